"""The messages of our commits, and the reasons in git's logs: written here, and read here alone.

A commit's message is all that says on every machine what sync did, and what every version of this
program has written. A trailer beside it would be lacking in each history that there is, so both
would have to be read. What is not to the letter as written here is taken for a person's, whose
trees are compared instead. Reasons stay on the machine, but earlier versions have written them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from aiaml_server.storage.store import id_in

Verb = Literal[
    "Add", "Update", "Forget", "Import", "Set up", "Join", "Forget everywhere", "Set aside"
]

_OF_ONE: Sequence[Verb] = ("Add", "Update", "Forget")
_OF_ALL: dict[Verb, str] = {
    "Set up": "Set up the memory directory",
    "Join": "Join the memories of another machine",
    "Forget everywhere": "Forget memories everywhere",
    "Set aside": "Set aside malformed entries",
}
_READ = {message: verb for verb, message in _OF_ALL.items()}

REASON = "aiaml: "  # begins all of ours
BEGIN = f"{REASON}begin"
GO_ON_FROM_PUSHED = f"{REASON}go on from what was pushed"
JOIN = f"{REASON}join "  # and the commit that arrived
MEND = f"{REASON}mend"


class Did(NamedTuple):
    """What sync did in a commit.

    Attributes:
        verb: what; None where the commit is not by sync.
        name: of the file to which alone it was done, with single blanks; empty for several.
    """

    verb: Verb | None
    name: str = ""

    @property
    def is_to_memories(self) -> bool:
        """Whether it is what was added, edited or deleted on one machine."""
        return self.verb in (*_OF_ONE, "Import")


def written(verb: Verb, names: Sequence[str] = ()) -> str:
    """Return the message of a commit that does something, to these files."""
    if verb in _OF_ALL:
        return _OF_ALL[verb]
    if len(names) != 1:
        return f"Import {len(names)} memories"
    name = " ".join(names[0].split())
    return f"{verb} memory {id_in(name)} ({name})"


def did(message: str) -> Did:
    """Return what a message says."""
    for verb in _OF_ONE:
        if message.startswith(start := f"{verb} memory "):
            said = message[len(start) : -1]
            end = id_in(said)  # without an underscore, the name is the id, and both are in it
            identity = end if "_" in said else end[len(end) // 2 + 1 :]
            name = said[len(identity) + 2 :]
            return Did(verb, name) if message == written(verb, [name]) else Did(None)
    number = message.removeprefix("Import ").removesuffix(" memories")
    if number.isdecimal() and message == f"Import {number} memories":
        return Did("Import")
    return Did(_READ.get(message))
