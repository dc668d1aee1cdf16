"""`completion`: the Tab key."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from aiaml_server.terminal import REFUSED, Ended, out

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete with the Tab key.

    \b
    Examples:
      echo 'eval "$(aiaml completion bash)"' >> ~/.bashrc
      echo 'eval "$(aiaml completion zsh)"' >> ~/.zshrc
      aiaml completion fish > ~/.config/fish/completions/aiaml.fish
    """
    program = context.find_root()
    kind = get_completion_class(shell)
    if kind is None:
        raise Ended(f"nothing is known about the shell {shell}", REFUSED)
    try:
        source = kind(program.command, {}, "aiaml", "_AIAML_COMPLETE").source()
    except RuntimeError as error:  # a bash that is too old
        raise Ended(str(error), REFUSED) from error
    out(source)
