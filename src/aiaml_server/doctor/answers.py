"""The index: opens, knows the same memories as the files, and answers as they do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

from aiaml_server.doctor.context import Context
from aiaml_server.doctor.finding import Finding, Fix
from aiaml_server.format.scorer import rank
from aiaml_server.index.index import Index
from aiaml_server.storage.derived import INDEX, others
from aiaml_server.storage.store import Store
from aiaml_server.terminal import format_size, plural

_UNWATCHED = (
    "other programs use all that this system has (fs.inotify.max_user_instances) for telling which"
    " files are edited, so a server looks itself: at a question, at 10,000 memories for each second"
    " since the last one, which take 30 ms; with more, an edit by hand is found that much later"
)
_MORE_INSTANCES = (
    "end programs that watch many files, or `sudo sysctl fs.inotify.max_user_instances=1024`"
)
_NAMED = 5  # names that are told
_CHECK_DISK = "nothing is lost; should it come again, check the disk"


def index(context: Context) -> Iterator[Finding]:
    """Ask what was asked of the files, and compare."""
    if not (base := context.base) or not (base / "files").is_dir():
        return
    store = Store(base)
    asked = context.scan.answers
    with closing(Index(store)) as questioned:
        wrong = [
            each
            for each, hits in asked.items()
            if questioned.think(each) != hits
            and questioned.think(each) != rank(store.scan(), each)  # the files of this very moment
        ]
        unwatched = questioned.lacks_watch
        missing = _named(questioned) ^ context.scan.names
        if missing:  # of this very moment, in which others may be writing
            missing = {name for name, _ in store.scan()} ^ _named(questioned)
    if questioned.repaired:
        yield Finding("index", "warning", questioned.repaired, _CHECK_DISK)
    if questioned.unusable:
        remedy = "answers are right but slow until then, and what agents ask for is not noted"
        yield Finding("index", "warning", questioned.unusable, remedy)
    yield from _beside(base)
    if unwatched:
        yield Finding("index", "warning", _UNWATCHED, _MORE_INSTANCES)
    if not (wrong or missing):
        questions = plural(len(asked), "question")
        yield Finding("index", "ok", f"{_sizes(base)}; answers {questions} as the files do")
        return
    what = f"does not answer {' '.join(wrong[0])!r} as the files do" if wrong else ""
    what = what or f"and the files differ in {min(missing)}"
    remedy = f"delete {base / INDEX} (it is made anew), or `aiaml doctor --fix`"
    what_goes = f"delete the index in {base / INDEX}, which is made anew"
    fix = Fix(what_goes, lambda: Index.delete(base))
    yield Finding("index", "error", f"the index {what}", remedy, fix)


def _beside(base: Path) -> Iterator[Finding]:
    """Name what lies beside the index and is not used."""
    try:
        folders, names = others(base)
    except OSError:  # `files` says what stands there, or `index` why it is in memory
        return
    if folders:
        told = plural(len(folders), "folder")
        found = f"{told} in {base / INDEX} of other users or other places: {_first(folders)}"
        yield Finding("index", "ok", f"{found}; yours go when they were not used for a month")
    if names:
        found = (
            f"{plural(len(names), 'name')} in {base / INDEX} not of this program: {_first(names)}"
        )
        remedy = "it may have come with a cloned directory; nothing of it is opened: move it away"
        yield Finding("index", "warning", found, remedy)


def _first(names: list[str]) -> str:
    return ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])


def _sizes(base: Path) -> str:
    kinds = Index.files_in(base)
    files = [path for path in chain.from_iterable(kinds) if path.is_file()]
    size = format_size(sum(path.stat().st_size for path in files))
    more = f", of these {plural(len(kinds) - 1, 'file')} of other Pythons" if len(kinds) > 1 else ""
    return f"{size}{more}"


def _named(index: Index) -> set[str]:
    return {name for _, name in index.dated()}
