"""The page that says where each clause of a specification is tested."""

from __future__ import annotations

import re

import pytest

from paths import ROOT, TESTS


@pytest.mark.slow
def test_every_test_in_the_specification_exists() -> None:
    """Whoever renames a test renames it in the table."""
    tests = "\n".join(path.read_text("utf-8") for path in TESTS.rglob("*.py"))
    defined = set(re.findall(r"^ *(?:async )?def (test_\w+)", tests, re.MULTILINE))
    text = (ROOT / "docs" / "specification.md").read_text("utf-8")
    named = re.findall(r"`(test_\w+)`", text)
    assert len(named) > 80
    assert [name for name in named if name not in defined] == []
