"""Read from the input what a host says, and print what its agent is told.

Options: `--dir DIRECTORY`, `--host NAME`, and `--toolset NAME` for what that tells instead.

It imports neither click nor the SDK, waits for no other process, and ends with 0 and without a word
where there is nothing to tell, or anything is wrong; that goes to stderr, which hosts log.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiaml_server.server.hooks.hosts import Said
    from aiaml_server.server.hooks.telling import Told

MOST = 1 << 20  # bytes of what a host says
SECONDS = 0.25  # from the start of this program, after which a host is not kept waiting
MORE_SECONDS = 2.0  # the same for another toolset, which reads the repository's files


def main() -> None:
    """Answer one event of a host."""
    gc.disable()  # with what it finds, and what ends a Python in order, a tenth of the time
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
    toolset = options.get("--toolset", "").removesuffix("aiaml")
    timer = threading.Timer(MORE_SECONDS if toolset else SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()
    try:
        _answer(options, toolset)
    except Exception as error:  # noqa: BLE001 (no hook may end a person's session)
        sys.stderr.write(f"aiaml-hook: {type(error).__name__}: {error}\n")
    sys.stderr.flush()
    os._exit(0)


def _answer(options: Mapping[str, str], toolset: str) -> None:
    from aiaml_server.server.hooks.hosts import Said, project  # noqa: PLC0415 (inside the time and `try`)
    from aiaml_server.settings import MEMORY_DIR, Settings  # noqa: PLC0415

    said = Said.parsed(_input(), options.get("--host", ""))
    if said is None:
        return
    there = {MEMORY_DIR: options["--dir"]} if options.get("--dir") else {}
    settings = Settings.from_environ({**os.environ, **there, **_project_settings(said.place)})
    if not settings.hooks:
        return
    from aiaml_server.server.hooks import telling  # noqa: PLC0415
    from aiaml_server.storage.store import Store  # noqa: PLC0415

    store = Store(settings.base)
    told = telling.Told()
    if toolset:
        told = _by_toolset(toolset, said)
    elif said.event == "prompt":
        told = telling.at_prompt(store, said.prompt)
    elif said.event == "session_start":
        told = telling.at_start(store, project(said.place))
    if told.text:
        os.write(1, said.answer(told.text))


def _project_settings(place: str) -> dict[str, str]:
    """Return the settings of a hook that the project's own entry of this server has.

    So memories of one's own never appear in a project that has a memory directory of its own.
    """
    from pathlib import Path  # noqa: PLC0415 (inside the time and `try`)

    from aiaml_server.clients.edit import project_variables  # noqa: PLC0415
    from aiaml_server.settings import MEMORY_DIR  # noqa: PLC0415

    directory = Path(place)
    for each in (directory, *directory.parents) if place else ():
        if each == Path.home():  # the files of clients there are one's own
            break
        found = project_variables(each)
        if found or (each / ".git").exists():
            return {name: found[name] for name in (MEMORY_DIR, "AIAML_HOOKS") if name in found}
    return {}


def _by_toolset(name: str, said: Said) -> Told:
    """Return what a toolset tells at this event."""
    from pkgutil import resolve_name  # noqa: PLC0415

    from aiaml_server.server.hooks import telling  # noqa: PLC0415 (inside the time and `try`)
    from aiaml_server.toolset import HookInput  # noqa: PLC0415
    from aiaml_server.toolsets import manifest  # noqa: PLC0415

    place = manifest(name).hooks.get(said.event)
    if not place:
        return telling.Told()
    given = HookInput(said.event, said.place, prompt=said.prompt, path=said.file)
    return telling.of_toolset(name, resolve_name(place)(given))


def _input() -> bytes:
    """Return what stands on the input, up to `MOST` bytes.

    What is beyond is read and dropped, until the time is over: a host that writes to a pipe which
    nobody reads any more gets an error, or a signal that ends it.
    """
    if os.isatty(0):
        return b""
    parts: list[bytes] = []
    size = 0
    while part := os.read(0, 65536):
        parts += [part] if size < MOST else []
        size += len(part)
    return b"".join(parts)


if __name__ == "__main__":
    main()
