"""The warning of toolsets about a possible secret: its kind, never its value."""

from __future__ import annotations

from itertools import pairwise

from aiaml_server.format.secrets import Secret, find_secret
from aiaml_server.settings import CHECK_SECRETS as CHECK_SECRETS  # noqa: PLC0414 (for the manifests)

IN_GIT = "others can read what is stored here, and git keeps it for good: take it out"
IN_DATABASE = (
    "`aiaml semantic forget ID` deletes it for good, while the text that delete_memory or"
    " update_memory takes out can be brought back for 30 days"
)

_NAME = 200  # the last characters that are checked
_LONGEST = 250  # characters of a value on a line of its own


def secret_warning(*texts: str | None, check: bool, advice: str = IN_GIT) -> list[str]:
    """Return a warning if one of the texts seems to hold a secret; else nothing.

    A text that names a secret and a following text of a single word are checked together, such as
    the subject "router password" and the password as the content.

    Args:
        texts: what is stored.
        check: whether to look for secrets.
        advice: how long it is kept where it is stored, and what to do.
    """
    given = [each for each in texts if each]
    below = [
        f"{name[-_NAME:]}:\n{word}"
        for name, word in pairwise(given)
        if len(word) <= _LONGEST and len(word.split()) == 1
    ]
    found = find_leak("\n".join([*given, *below]).encode("utf-8", "replace"), check=check)
    if found is None:
        return []
    return [f"this seems to hold {found.kind}; {advice}; change it if it was a real one"]


def find_leak(data: bytes, *, check: bool) -> Secret | None:
    """Return the first secret in `data`; None if the check is off."""
    return find_secret(data) if check else None
