"""What is forgotten everywhere: told to other machines by a file of the tree, and heard of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aiaml_server.sync.forgetting.rewrite import FILE, mark, text_of
from aiaml_server.sync.status import Busy
from aiaml_server.sync.stream import SCRATCH, Step, commits

if TYPE_CHECKING:
    from aiaml_server.sync.repository import Repository

_MANY = 20  # memories to forget at another machine's word that need none of the person's here
_SHARE = 5  # more do if they are more than a fifth


def hear(repository: Repository, theirs: str, *, follow: bool) -> str:
    """Note what another machine's commit tells to be forgotten everywhere.

    With `follow`, the person has said so, however much it is.

    Returns:
        What of it was here, for the person to hear; empty where nothing was.

    Raises:
        Busy: it is so much that a person has to say so.
        OSError: the disk refused.
    """
    erasure = repository.erasure
    new = erasure.told_by(theirs) - erasure.marks
    if not new:
        return ""
    tree = repository.tree(repository.head())
    gone = [path for path in tree if mark(path) in new]
    if len(gone) > _MANY and _SHARE * len(gone) > len(tree) and not follow:
        raise Busy(
            f"another machine has {len(gone)} of the {len(tree)} memories here forgotten "
            "everywhere, for good",
            "if that is meant, `aiaml sync --forget` follows. Until then nothing is exchanged.",
        )
    erasure.add(new)
    if not gone:
        return ""
    changed = [path for path in gone if mark(tree[path].oid) not in erasure.marks]
    names = ", ".join(os.fsdecode(path) for path in changed)
    also = f"; what was changed here went as well, in {names}" if changed else ""
    count = "1 memory was" if len(gone) == 1 else f"{len(gone)} memories were"
    return (
        f"{count} forgotten here, for good, since another machine has them forgotten "
        f"everywhere{also}"
    )


def tell(repository: Repository, commit: str) -> str:
    """Return a commit whose tree tells other machines what is forgotten everywhere.

    It is the given one where that does so already, and else one on top of it.
    """
    marks = repository.erasure.marks
    if not marks:
        return commit
    told = repository.erasure.told_by(commit)
    if marks <= told:
        return commit
    step = Step("Forget everywhere", FILE, text_of(marks | told))
    made = commits([[step]], SCRATCH, commit, repository.who())
    return repository.write_commits(made, "--force")
