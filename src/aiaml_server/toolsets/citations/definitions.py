"""Which definition a line belongs to, and where one of a name stands.

Definitions are told by indentation and by the words that open them, as most languages have it; to
find one by its name in a Python file, Python itself reads it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

_PYTHON = (".py", ".pyi")
_WORDS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|override"
    r"|unsafe|inline|virtual|declare|extern|pub(?:\([^)]*\))?)\s+){0,6}"
)
_KINDS = (
    r"(?:async\s+def|def|class|func|function(?:\s*\*)?|fn|interface|type|struct|enum|trait|module"
    r"|namespace|object|record|impl(?:<[^>]*>)?(?:\s+[\w:<>]+\s+for)?)"
)
_OPENS = re.compile(
    rf"(?P<indent>[ \t]*){_WORDS}"
    rf"(?:{_KINDS}\s+(?:\((?:\w+\s+)?\*?(?P<of>\w+)(?!\w)[^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$]*)"
    r"|(?:const|let|var|val|static)\s+(?P<variable>[A-Za-z_$][\w$]*)\b(?=[^=]*=)"
    r"|(?P<method>[A-Za-z_$#][\w$]*)(?:\s*(?:<[^<>]*>)?\([^;]*\{\s*$"
    r"|\s*(?::[^=]*)?=\s*(?:async\s*)?\([^;]*=>"
    r"|(?P<below>(?:\s*(?::[^=]*)?=\s*(?:async\s*)?)?[<(]\s*$)))"
)
_NO_METHODS = {"if", "for", "while", "switch", "catch", "with", "return", "function", "match"}
MOST_LINES = 5000  # that are looked at, upwards
_MOST_DECORATING = 200  # lines


def enclosing(lines: Sequence[str], number: int) -> str:
    """Return the definition that a line belongs to or opens, such as `Shop.price`; or nothing.

    What decorates a definition belongs to it.
    """
    names: list[str] = []
    least: int | None = None
    for at in range(number, max(0, number - MOST_LINES), -1):
        line = lines[at - 1].strip()
        if not line:
            continue
        indent = len(lines[at - 1]) - len(lines[at - 1].lstrip())
        if least is not None and indent >= least:
            continue
        if line[0] in ")]}>" and at != number:
            continue  # it closes what a line above has opened
        name = _decorated(lines, at, indent) if line[0] == "@" else _opened(lines, at)
        if name:
            names.insert(0, name)
        least = indent
        if indent == 0:
            break
    return ".".join(names)


def _decorated(lines: Sequence[str], number: int, indent: int) -> str:
    """Return the name of the definition below a line that decorates it."""
    for at, line in enumerate(lines[number : number + _MOST_DECORATING], number + 1):
        if len(line) - len(line.lstrip()) == indent and (name := _opened(lines, at)):
            return name
    return ""


def named(text: str, kind: str, name: str) -> list[int]:
    """Return on which lines a definition of a name stands, such as `price` or `Shop.price`."""
    if kind in _PYTHON:
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            found = dict(_of_python(ast.parse(text)))
            return sorted(line for line, each in found.items() if _means(each, name))
    lines = text.split("\n")
    last = name.rpartition(".")[2]
    return [
        number
        for number, line in enumerate(lines, 1)
        if last in line and _opened(lines, number) and _means(enclosing(lines, number), name)
    ]


def _means(full: str, name: str) -> bool:
    return full == name or full.endswith(f".{name}")


def _opened(lines: Sequence[str], number: int) -> str:
    """Return the name of the definition that a line opens, with its type's where that is said."""
    found = _OPENS.match(lines[number - 1])
    name = found and (found["name"] or found["variable"] or found["method"])
    if not found or name in _NO_METHODS:
        return ""
    if found["below"] and not _opens_below(lines, number):
        return ""
    return f"{found['of']}.{name}" if found["of"] else str(name)


def _opens_below(lines: Sequence[str], number: int) -> bool:
    """Say whether parameters that begin on a line end on one that opens a block."""
    indent, _, _ = lines[number - 1].partition(lines[number - 1].strip())
    for line in lines[number : number + _MOST_DECORATING]:
        if not line.startswith((f"{indent} ", f"{indent}\t")) and line.strip():
            if not line.startswith((f"{indent})", f"{indent}>")):
                return False
            if line.rstrip().endswith("{"):
                return True
    return False


def _of_python(node: ast.AST, above: str = "") -> Iterator[tuple[int, str]]:
    """Yield the lines of the definitions and named values below a node, each with its name."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each.lineno, above + each.name
            yield from _of_python(each, f"{above}{each.name}.")
        elif isinstance(each, ast.Assign | ast.AnnAssign):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield each.lineno, above + target.id
        else:
            yield from _of_python(each, above)
