"""The page of a toolset says what is so: its demo, tools, settings, codes, and the verbs' names."""

from __future__ import annotations

import importlib
import re
from pkgutil import resolve_name

import click
import pytest
import yaml

from aiaml_server import toolsets
from aiaml_server.errors import AiamlError
from aiaml_server.toolsets.owners import SAFE
from paths import ROOT

PAGES = ("sessions", "compartments", "citations", "semantic")


def page(name: str) -> str:
    """Return a toolset's page."""
    return (ROOT / "docs" / "toolsets" / f"{name}.md").read_text("utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_every_tool_verb_and_setting_is_on_the_page(name: str) -> None:
    """And no setting that there is not."""
    manifest = toolsets.manifest(name)
    text = page(name)
    for tool in manifest.tools:
        assert f"`{tool}(" in text, tool
    group: click.Group = resolve_name(manifest.commands)
    for verb in group.commands:
        assert re.search(rf"`(aiaml {name} )?{verb}\b", text), verb
    every = [each for own in toolsets.OWN for each in toolsets.manifest(own).settings]
    named = set(re.findall(r"AIAML_\w+", text))
    assert named >= {each.name for each in (*manifest.settings, SAFE)}
    assert named <= {each.name for each in (*every, SAFE)}
    for each in manifest.settings:
        assert not each.default or f"`{each.default}`" in text


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_exactly_the_codes_of_failures(name: str) -> None:
    """A closed list."""
    failures = importlib.import_module(f"aiaml_server.toolsets.{name}.failures")
    homes = (failures.__name__, "aiaml_server.errors")
    real = {
        each.__name__
        for each in vars(failures).values()
        if isinstance(each, type)
        and issubclass(each, AiamlError)
        and each.__module__ in homes
        and not any(below.__module__ in homes for below in each.__subclasses__())
    }
    section = page(name).partition("\n## Errors\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    named = {code for row in rows for code in re.findall(r"`([A-Z]\w+)`", row.split("|")[1])}
    assert named == real | {"InvalidInput", "InternalError"}


def test_the_hook_on_the_page_is_one_that_there_is() -> None:
    """With an address that the reader knows, and we do not invent."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    shown = re.search(r"```yaml\n(.*?)```", page("sessions"), re.DOTALL)
    assert shown
    ((used,),) = (each["hooks"] for each in yaml.safe_load(shown[1])["repos"])
    assert used["id"] in {each["id"] for each in hooks}
    assert "http" not in shown[1]
