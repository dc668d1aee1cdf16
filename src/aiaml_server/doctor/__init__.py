"""`aiaml doctor`: checks that report problems and remedies.

A check is a function that yields findings. It leaves nothing changed.

    context       the environment and directory that all checks read
    installation  the program, its settings and toolsets, the clients, a server as they start it
    memories      the memory directory, its disk, the files and the index
    syncing       git and the remote
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from aiaml_server.doctor import installation, memories, syncing
from aiaml_server.doctor.context import Context, guarded
from aiaml_server.terminal import show_status
from aiaml_server.toolset import Finding

CHECKS: dict[str, Callable[[Context], Iterator[Finding]]] = {
    "version": installation.version,
    "settings": installation.settings,
    "toolsets": installation.served_toolsets,
    "directory": memories.location,
    "disk": memories.disk,
    "access": memories.permissions,
    "files": memories.files,
    "replaced": memories.replaced,
    "index": memories.index,
    "sync": syncing.status,
    "remote": syncing.remote,
    "clients": installation.connections,
    "server": installation.server,
}
"""The checks in their order."""


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
        yield from guarded(name, CHECKS[name], context)
