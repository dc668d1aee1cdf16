"""The tables that say where each clause of a specification is tested."""

from __future__ import annotations

import re

import pytest

from paths import ROOT, TESTS

DOCS = ROOT / "docs"
TABLES = ["specification.md", "specification-citations.md"]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_every_test_and_quotation_in_the_tables_exists(table: str) -> None:
    """Whoever renames a test renames it in the table."""
    files = [*TESTS.rglob("*.py"), *(ROOT / "src").rglob("testing.py")]
    tests = "\n".join(path.read_text("utf-8") for path in files)
    defined = set(re.findall(r"^ *(?:async def|def|class) (\w+)", tests, re.MULTILINE))
    pages = " ".join(path.read_text("utf-8") for path in (DOCS / "toolsets").glob("*.md"))
    text = (DOCS / table).read_text("utf-8")
    named = re.findall(r"`((?:test_|Test)\w+)`", text)
    quoted = re.findall(r'\| "([^"]+)" \|', text)
    assert len(named) > 20
    assert [name for name in named if name not in defined] == []
    assert [words for words in quoted if words not in " ".join(pages.split())] == []
