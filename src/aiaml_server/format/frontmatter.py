"""Text with YAML frontmatter: head and body, the entries of a head, and scalars both ways.

Only the standard library is used for what `memory.format` writes; YAML is imported for the rest.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from aiaml_server.errors import MalformedFile

if TYPE_CHECKING:
    import yaml

MAX_HEAD = 64 * 1024  # characters of a frontmatter; a YAML parser takes half a second for so many

_OPENING = re.compile("\ufeff?---[ \t]*(\r?\n)")
_CLOSING = re.compile("^---[ \t]*(?:\r?\n|\\Z)", re.MULTILINE)


class Parts(NamedTuple):
    """A text in its two parts.

    Attributes:
        head: what stands between the two lines `---`.
        body: what stands below the second.
        line_end: how the first line ends.
    """

    head: str
    body: str
    line_end: str


def split(text: str) -> Parts:
    """Divide a text into its frontmatter and its body.

    Raises:
        MalformedFile: it has no frontmatter, or one that is too long.
    """
    opening = _OPENING.match(text)
    if not opening:
        raise MalformedFile(["the first line is not ---"])
    closing = _CLOSING.search(text, opening.end())
    if not closing:
        raise MalformedFile(["no second line --- closes the frontmatter"])
    if closing.end() > MAX_HEAD:
        raise MalformedFile([f"the frontmatter is longer than {MAX_HEAD:,} characters"])
    return Parts(text[opening.end() : closing.start()], text[closing.end() :], opening[1])


def split_entries(head: str) -> list[list[str]]:
    """Return the entries of a head: each a line and the lines that continue it.

    Those are indented, blank, or items of a list.
    """
    found: list[list[str]] = []
    for line in (raw.rstrip("\r") for raw in head.split("\n")):
        continues = not line.strip() or line[0] in " \t" or line == "-" or line.startswith("- ")
        if not (found and continues):
            found.append([line])
        else:
            found[-1].append(line)
    return found


# --- scalars, written -------------------------------------------------------------------------

# Bare: a letter first, so no number, sign or indicator; then only what neither reader gives a
# meaning to, and never at the end.
_BARE = re.compile(r"[^\W\d_](?:[\w .@+/-]*[\w.@+/])?")
_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")  # beyond what JSON escapes


def format_scalar(text: str) -> str:
    """Write a text so that the plain reader and any YAML parser read it alike."""
    if _BARE.fullmatch(text) and text.lower() not in _YAML_WORDS:
        return text
    import json  # noqa: PLC0415 (most values need no quotes)

    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


# --- entries, read ----------------------------------------------------------------------------

_SINGLE_QUOTED = re.compile(r"'[^']*(?:''[^']*)*'")
# One item of a list. Each way of reading begins where the item does and ends where it must, so
# that no character is looked at again for every other one; white space is stripped afterwards.
_ITEM = re.compile(
    rf"""\s*(?:("[^"\\]*(?:\\.[^"\\]*)*"|{_SINGLE_QUOTED.pattern})\s*(?:,|$)|([^,]*)(?:,|$))"""
)


def parse_text(entry: list[str]) -> str | None:
    """Return the text that an entry states; None where it states something else."""
    value = _yaml(entry) if _continued(entry) else _unquoted(_after_colon(entry))
    return value if isinstance(value, str) else None


def parse_list(entry: list[str]) -> tuple[str, ...] | None:
    """Return the list of texts that an entry states; None where it states something else."""
    value = _after_colon(entry)
    if not _continued(entry):
        inner = value[1:-1] if value[:1] == "[" and value[-1:] == "]" else value
        items = (match[1] or match[2].rstrip() for match in _ITEM.finditer(inner))
        return tuple(filter(None, map(_unquoted, items)))
    loaded = _yaml(entry)
    if not isinstance(loaded, list) or not all(isinstance(item, str) for item in loaded):
        return None
    return tuple(loaded)


def _after_colon(entry: list[str]) -> str:
    return entry[0].partition(":")[2].strip()


def _continued(entry: list[str]) -> bool:
    return any(line.strip() for line in entry[1:])


def _unquoted(value: str) -> str:
    """Read a quoted scalar as YAML does; what is not one stands for itself."""
    if value[:1] not in ("'", '"'):
        return value
    if len(value) > 1 and value[0] == value[-1] == '"':
        import json  # noqa: PLC0415 (see `scalar`)

        try:
            text = json.loads(value)
        except ValueError:
            text = load_yaml(value)
        return text if isinstance(text, str) else value
    if _SINGLE_QUOTED.fullmatch(value):
        return value[1:-1].replace("''", "'")
    return value


def _yaml(entry: list[str]) -> object:
    loaded = load_yaml("\n".join([f"value:{entry[0].partition(':')[2]}", *entry[1:]]))
    return loaded.get("value") if isinstance(loaded, dict) else None


def load_yaml(text: str) -> object:
    """Load YAML with every scalar as text, so that nothing is guessed and nothing is executed.

    Returns:
        Text, lists and mappings; None if it cannot be loaded, is nested too deeply, or has aliases,
        with which a few bytes can mean any number of values.
    """
    import yaml  # noqa: PLC0415 (only files that other programs wrote need it)

    try:
        return yaml.load(text, _loader())  # noqa: S506 (it makes only text, lists, mappings)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError):
        return None


@cache
def _loader() -> type[yaml.BaseLoader]:
    import yaml  # noqa: PLC0415

    class LoaderWithoutAliases(yaml.BaseLoader):
        def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("an alias")
            return super().compose_node(parent, index)

    return LoaderWithoutAliases
