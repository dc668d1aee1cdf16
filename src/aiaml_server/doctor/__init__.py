"""`aiaml doctor`: checks that report problems and remedies.

A check is a function that yields findings. It leaves nothing changed.

    context       the environment and directory that all checks read
    installation  the program, its settings, its toolsets
    directory     the memory directory and its disk
    memories      the files and the index
    syncing       git and the remote
    clients       the configuration of clients, and a server as they start it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pkgutil import resolve_name

from aiaml_server.doctor.context import Context, guarded
from aiaml_server.terminal import show_status
from aiaml_server.toolset import Finding

CHECKS = {
    "version": "installation:version",
    "settings": "installation:settings",
    "toolsets": "installation:served_toolsets",
    "directory": "directory:location",
    "disk": "directory:writing",
    "access": "directory:permissions",
    "files": "memories:files",
    "replaced": "memories:replaced",
    "index": "memories:index",
    "sync": "syncing:status",
    "remote": "syncing:remote",
    "clients": "clients:connections",
    "server": "clients:server",
}
"""The checks in their order: the module in this package and the function in it."""


def run_checks(
    names: Iterable[str], environ: Mapping[str, str], *, offline: bool = False
) -> Iterator[Finding]:
    """Run checks, and yield each finding as it is known.

    Args:
        names: of the checks.
        environ: the environment variables.
        offline: whether the remote must not be contacted.
    """
    context = Context(environ, offline)
    for name in names:
        show_status(f"{name} …")
        check = resolve_name(f"{__name__}.{CHECKS[name]}")
        yield from guarded(name, check, context)
