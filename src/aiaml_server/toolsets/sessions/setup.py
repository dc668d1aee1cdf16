"""What a repository needs so that several branches can keep logs: proposed, then written.

Three parts: the attribute by which git keeps both sides of a merge, what checks the logs in CI or
before a commit, and the lines by which agents know of their memory. Each is added to what a file
has, whose other bytes stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from aiaml_server import __version__
from aiaml_server.errors import MalformedFile
from aiaml_server.files import read_regular
from aiaml_server.toolsets.failures import disk_error
from aiaml_server.toolsets.owners import foreign_owner
from aiaml_server.toolsets.sessions.driver import ATTRIBUTES, DRIVER, asked_for
from aiaml_server.toolsets.sessions.failures import DiskError, OutsideRepository
from aiaml_server.toolsets.writing import replace

MAX_FILE = 1024 * 1024  # bytes of a file that something is added to
PRE_COMMIT = ".pre-commit-config.yaml"
WORKFLOW = ".github/workflows/agent-memory.yml"
GUIDES = ("AGENTS.md", "CLAUDE.md")
CHECKS = ("github", "pre-commit", "none")

ATTRIBUTE = f"""\
# Session logs of agents: what both branches wrote is kept, by `aiaml sessions setup` in a clone.
/.github/agent-memory/*/logs/*.md merge={DRIVER}
/.github/agent-memory/*/_summary.md merge={DRIVER}
"""

HOOK = f"""\
- repo: local
  hooks:
    - id: aiaml-sessions-check
      name: check the session logs of agents
      entry: aiaml sessions check
      language: python
      additional_dependencies: ["aiaml-server=={__version__}"]
      files: ^\\.github/agent-memory/[^/]+/(logs/[^/]+|_summary|_schema)\\.md$
      require_serial: true
"""

CI = f"""\
name: Agent memory
on:
  pull_request:
    paths: [".github/agent-memory/**"]
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
        with:
          fetch-depth: 0
      - run: >-
          pipx run --spec aiaml-server=={__version__}
          aiaml sessions check --format github --against "origin/$GITHUB_BASE_REF"
"""

GUIDE = """\
## Agent memory

Each agent keeps a log of its sessions and a lasting summary in `.github/agent-memory/<name>/`.

- Your name there is that of the program you are, in lower case, such as `claude-code`. Keep to it:
  another name is another memory.
- Begin with `start_session` and `read_summary`; without these tools, `aiaml sessions show <name>`.
- As they come out, put decisions, open questions and next actions into the log with `append_entry`,
  each as an item that begins with `- ` and gives its reason.
- What the person holds to be lasting goes into the summary with `update_summary`.
- Change nothing in these files by hand, and put no secret into them.
"""


class Part(NamedTuple):
    """One file that is to be changed, or made.

    Attributes:
        name: its path in the repository.
        added: the text that is added to it.
        data: all of it then.
    """

    name: str
    added: str
    data: bytes


class Plan(NamedTuple):
    """What is to be written, and what a person has to do: sentences."""

    parts: list[Part]
    by_hand: list[str]


def plan(root: Path, check: str | None) -> Plan:
    """Return what a repository lacks; nothing is written.

    Args:
        root: its top.
        check: one of `CHECKS`; None for pre-commit where the repository uses it, else GitHub.

    Raises:
        OutsideRepository: a file is a link, or another user's.
        DiskError: one cannot be read.
    """
    names = (ATTRIBUTES, PRE_COMMIT, WORKFLOW, *GUIDES)
    if whose := foreign_owner(root, (".git", *names)):
        raise OutsideRepository(whose)
    found = Plan([], [])
    attributes = _read(root, ATTRIBUTES)
    if not asked_for(root):
        found.parts.append(_appended(ATTRIBUTES, attributes, ATTRIBUTE))
    config = _read(root, PRE_COMMIT)
    if check is None:
        check = "github" if config is None else "pre-commit"
    if check == "pre-commit":
        _add_hook(found, config)
    elif check == "github" and _read(root, WORKFLOW) is None:
        found.parts.append(Part(WORKFLOW, CI, CI.encode()))
    for name in _guides(root):
        guide = _read(root, name)
        if b"agent-memory/" not in (guide or b""):
            found.parts.append(_appended(name, guide, GUIDE))
    return found


def write(root: Path, parts: list[Part]) -> None:
    """Write the parts, each as a whole file.

    Raises:
        DiskError: the disk refused; the files before are written.
    """
    for part in parts:
        path = root / part.name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, part.data)
        except OSError as error:
            raise disk_error(part.name, error) from error


def _add_hook(found: Plan, config: bytes | None) -> None:
    """Add the hook to pre-commit's configuration; where that is not plain, say what to put in."""
    if b"aiaml-sessions-check" in (config or b""):
        return
    if config is None:
        text = f"repos:\n{HOOK}"
        found.parts.append(Part(PRE_COMMIT, text, text.encode()))
        return
    indent = _indent(config)
    if indent is None:
        found.by_hand.append(f"add to the repos of {PRE_COMMIT}:\n\n{HOOK}")
        return
    hook = "".join(f"{indent}{line}\n" for line in HOOK.splitlines())
    found.parts.append(_appended(PRE_COMMIT, config, hook, gap=False))


def _indent(config: bytes) -> str | None:
    """Return how far the items of `repos` are indented, to which one can be added at the end.

    None where the list does not stand in lines of its own, or another key comes behind it.
    """
    lines = [each.rstrip() for each in config.decode("utf-8", "replace").splitlines()]
    said = [each for each in lines if each and not each.lstrip().startswith("#")]
    items = said[said.index("repos:") + 1 :] if "repos:" in said else []
    if not items or any(each[0] not in " -" for each in items):
        return None
    first = items[0].lstrip(" ")
    return " " * (len(items[0]) - len(first)) if first.startswith("- ") else None


def _guides(root: Path) -> list[str]:
    """Return which files agents read here: those that there are, else the one that most read.

    One that only leads to the other, by a link or a word, is left out.
    """
    there = [each for each in GUIDES if (root / each).is_file() and not (root / each).is_symlink()]
    if len(there) == 2 and b"AGENTS.md" in (_read(root, "CLAUDE.md") or b""):
        return ["AGENTS.md"]
    return there or ["AGENTS.md"]


def _appended(name: str, data: bytes | None, text: str, *, gap: bool = True) -> Part:
    """Return a file with a text behind what it holds, with the file's own line ends."""
    before = data or b""
    end = b"\r\n" if b"\r\n" in before else b"\n"
    if before and not before.endswith(b"\n"):
        before += end
    if before and gap:
        before += end
    return Part(name, text, before + text.encode().replace(b"\n", end))


def _read(root: Path, name: str) -> bytes | None:
    path = root / name
    for each in (path, *path.parents):
        if each == root:
            break
        if each.is_symlink():
            where = each.relative_to(root).as_posix()
            raise OutsideRepository(f"{where} is a link; it could lead outside")
    try:
        return read_regular(str(path), MAX_FILE)
    except FileNotFoundError:
        return None
    except MalformedFile as error:
        raise DiskError(f"{name}: {error}") from error
    except OSError as error:
        raise disk_error(name, error) from error
