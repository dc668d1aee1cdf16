"""Few hops: a private function with one caller must say more than its body does."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "aiaml_server"
MOST = 0.25  # of all functions; issue 11, point 9


def helpers(source: str) -> tuple[int, int]:
    """Return how many private functions a module names once, and how many functions it has."""
    nodes = list(ast.walk(ast.parse(source)))
    names = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    names += Counter(node.attr for node in nodes if isinstance(node, ast.Attribute))
    functions = [n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    private = [name for name in functions if name[0] == "_" and not name.startswith("__")]
    return sum(names[name] == 1 for name in private), len(functions)


def test_at_most_a_quarter_of_all_functions_is_private_and_named_once() -> None:
    """Whoever reads follows few names that nobody else needs; inline those that say nothing."""
    counts = [helpers(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    once, functions = map(sum, zip(*counts, strict=True))
    assert once <= MOST * functions, f"{once} of {functions}"


def test_what_is_counted() -> None:
    """Named once in its module; called twice, public or special is something else."""
    source = """
class A:
    def __init__(self): self._once()
    def _once(self): _twice()
    def public(self): _twice()
def _twice(): pass
def _of_others(): pass
"""
    assert helpers(source) == (1, 5)
