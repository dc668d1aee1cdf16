"""`citations` in CI without any installation: a checkout, one file, pre-commit, GitHub's action."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from aiaml_server.toolsets.citations import Citation, Memories
from machine import git
from paths import ROOT
from printed import completed

SCRIPT = ROOT / "scripts" / "citations.py"
BASH = shutil.which("bash")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a memory that cites a line."""
    path = tmp_path / "shop with space"
    path.mkdir()
    git(path, "init", "--quiet")
    (path / "prices.py").write_text("def price(order):\n    return sum(order)  # in cents\n")
    Memories(path).save("Prices are in cents", "text", [Citation("prices.py", 2)])
    return path


def run(words: Sequence[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program; a Python in it sees nothing that is installed."""
    return completed(words, cwd=cwd, env={**os.environ, **env}, timeout=60)


def three_states(repo: Path, words: Sequence[str], **env: str) -> None:
    """See that a command exits with 0, 1 and 2, and says why."""
    done = run(words, repo, **env)
    assert done.returncode == 0, done.stderr
    (repo / "prices.py").write_text("nothing\n")
    done = run(words, repo, **env)
    assert done.returncode == 1 and "prices.py:2" in done.stdout, done.stderr
    (repo / "memories" / "mem-bad.md").write_text("bad\n")
    done = run(words, repo, **env)
    assert done.returncode == 2 and "mem-bad.md: line 1" in done.stdout, done.stderr


def test_a_checkout_runs_it(repo: Path) -> None:
    """With Python's own library alone."""
    three_states(repo, [sys.executable, "-I", "-S", str(SCRIPT), "verify"])


@pytest.mark.slow
def test_one_file_runs_it(repo: Path, tmp_path: Path) -> None:
    """Made by the script, small, and without the checkout."""
    file = tmp_path / "citations.pyz"
    assert (
        run([sys.executable, "-I", "-S", str(SCRIPT), "--zip", str(file)], tmp_path).returncode == 0
    )
    assert file.stat().st_size < 170_000
    names = zipfile.ZipFile(file).namelist()
    assert "aiaml_server/toolsets/citations/verify.py" in names
    assert not [name for name in names if "pycache" in name or "sessions" in name]
    three_states(repo, [sys.executable, "-I", "-S", str(file), "verify"])


@pytest.mark.slow
def test_what_is_in_the_one_file_is_all_that_it_needs(tmp_path: Path, repo: Path) -> None:
    """Every verb but those for which something is to be installed."""
    file = tmp_path / "citations.pyz"
    run([sys.executable, str(SCRIPT), "--zip", str(file)], tmp_path)
    bare = [sys.executable, "-I", "-S", str(file)]
    (saved,) = Memories(repo).list().memories
    for line in (
        "list", "search cents", f"get {saved}", "graph", f"graph {saved}", "sync-index",
        "save again --content x", f"delete {saved} --yes",
    ):  # fmt: skip
        done = run([*bare, *line.split()], repo)
        assert done.returncode == 0, done.stderr


def test_what_could_not_be_run_is_no_verdict(tmp_path: Path, repo: Path) -> None:
    """An old Python, and a fault of the program: not the exit code of what is stale."""
    file = tmp_path / "citations.pyz"
    run([sys.executable, str(SCRIPT), "--zip", str(file)], tmp_path)
    old = "import sys, runpy; sys.version_info = (3, 9); sys.argv = sys.argv[1:]; "
    for each in (file, SCRIPT):
        code = f"{old}runpy.run_path(sys.argv[0], run_name='__main__')"
        done = run([sys.executable, "-c", code, str(each), "verify"], repo)
        assert (done.returncode, done.stderr) == (2, "this needs Python 3.10 or later\n")
    fault = (
        f"import sys; sys.path.insert(0, {str(file)!r}); "
        "from aiaml_server.toolsets.citations import bare, memories; "
        "memories.Memories.verify_all = None; sys.exit(bare.main(['verify']))"
    )
    done = run([sys.executable, "-I", "-c", fault], repo)
    assert done.returncode == 2 and "TypeError" in done.stderr


def test_the_hook_of_pre_commit(repo: Path) -> None:
    """Its entry, run as pre-commit runs a script: from the hooks' checkout, in the repository."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    (hook,) = (each for each in hooks if each["id"] == "aiaml-citations-verify")
    assert (hook["language"], hook["pass_filenames"], hook["always_run"]) == ("script", False, True)
    program, *words = shlex.split(hook["entry"])
    assert os.name == "nt" or os.access(ROOT / program, os.X_OK)
    assert (ROOT / program).read_text("utf-8").startswith("#!/usr/bin/env python3\n")
    three_states(repo, [sys.executable, str(ROOT / program), *words])


@pytest.mark.parametrize("program", [[str(SCRIPT)], ["-m", "aiaml_server", "citations"]])
def test_a_memory_gives_ci_no_command(tmp_path: Path, program: list[str]) -> None:
    """Whatever a pull request adds: no line that GitHub obeys but the annotations of verify."""
    (tmp_path / "memories").mkdir()
    (tmp_path / ".git").mkdir()
    planted = ["::add-mask::e", "::set-output name=x::y", "##[set-output name=a]b", "##vso[x]y"]
    cited = "".join(f'\n- path: "{each}"\n  line: 1\n  snippet: "{each}"' for each in planted)
    for number, each in enumerate(planted):
        head = f'id: mem-x-0000000{number}\nsubject: "{each}"\ncitations:{cited}'
        text = f"---\n{head}\n---\n\n{each}\n**Fact**: {each}\n"
        (tmp_path / "memories" / f"mem-x-0000000{number}.md").write_text(text)
    for line in ("verify", "verify --format github", "verify --json",
                 "about ::add-mask::e", "get mem-x-00000000"):  # fmt: skip
        done = run([sys.executable, *program, *line.split()], tmp_path)
        assert "add-mask::e" in done.stdout, done.stderr
        is_ours = "github" in line
        for each in (done.stdout + done.stderr).splitlines():
            ours = "::error file=memories/"
            rest = each.removeprefix("::") if is_ours and each.startswith(ours) else each
            assert not rest.strip().startswith("::"), each
            assert "##[" not in rest and "##vso[" not in rest


@pytest.mark.parametrize(
    "said", ["{directory: docs}", "{file_extension: .markdown}", "{directory: memories/more}"]
)
def test_settings_leave_no_memory_out_unsaid(repo: Path, said: str) -> None:
    """A pull request that has the memories looked for elsewhere does not make the check green."""
    words = [sys.executable, "-I", "-S", str(SCRIPT), "verify"]
    (repo / ".memory-config.yaml").write_text(f"storage: {said}\n")
    done = run(words, repo)
    assert done.returncode == 2 and "memories: 1 that look like memories" in done.stdout


def test_settings_that_changed_leave_no_memory_out_unsaid(repo: Path) -> None:
    """Nor back from the place that they named in a commit; where the files moved, all is well."""
    words = [sys.executable, "-I", "-S", str(SCRIPT), "verify", "--changed"]
    config = repo / ".memory-config.yaml"
    config.write_text("storage: {directory: kept}\n")
    (repo / "memories").rename(repo / "kept")
    git(repo, "add", ".")
    who = ("-c", "user.name=ada", "-c", "user.email=ada@example.com")
    git(repo, *who, "commit", "-q", "-m", "x")
    assert run(words[:-1], repo).returncode == run(words, repo).returncode == 0
    config.unlink()
    done = run(words, repo)
    assert done.returncode == 2 and "kept: 1 that look like memories" in done.stdout
    (repo / "kept").rename(repo / "memories")
    assert run(words, repo).returncode == 0


@pytest.mark.skipif(not BASH, reason="the action's shell is bash")
def test_the_action(repo: Path) -> None:
    """Its step, as GitHub runs it: annotations and the exit code, nothing of the inputs as code."""
    assert BASH
    text = (ROOT / "actions" / "citations" / "action.yml").read_text("utf-8")
    action = yaml.safe_load(text)
    (step,) = action["runs"]["steps"]
    assert action["runs"]["using"] == "composite" and step["shell"] == "bash"
    assert "${{" not in step["run"]
    assert set(step["env"]) == {each.upper() for each in action["inputs"]}
    environ = {
        "PYTHON": sys.executable,
        "REPOSITORY": str(repo),
        "GITHUB_ACTION_PATH": str(ROOT / "actions" / "citations"),
    }
    words = [BASH, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    three_states(repo, words, **environ)
    shown = run(words, repo, **environ).stdout
    assert "::error file=memories/mem-prices-are-in-cents-" in shown
    assert "title=changed::prices.py:2 is changed" in shown
    assert "::error file=memories/mem-bad.md,title=unreadable::" in shown
