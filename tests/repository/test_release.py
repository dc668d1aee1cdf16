"""The files that hosts and registries read agree with the package."""

from __future__ import annotations

import importlib.util
import json

from paths import ROOT

SCRIPT = ROOT / "scripts" / "release.py"


def test_every_file_names_the_version_of_the_package() -> None:
    """`scripts/release.py` finds no problem but the changelog, which is written at a release."""
    spec = importlib.util.spec_from_file_location("release", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)
    version = release.package_version()
    problems = release.find_problems(version, f"v{version}")
    assert [problem for problem in problems if "CHANGELOG" not in problem] == []
    assert any("the tag is v0" in problem for problem in release.find_problems(version, "v0"))


def test_the_plugin_is_the_one_that_the_marketplace_names() -> None:
    """Claude Code looks for it there."""
    marketplace = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text("utf-8"))
    (entry,) = marketplace["plugins"]
    plugin = json.loads((ROOT / entry["source"] / ".claude-plugin/plugin.json").read_text("utf-8"))
    assert plugin["name"] == entry["name"]
