"""The command line of `citations`, for people, hooks and CI; also on the standard library alone."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest
import yaml
from shop import BARE, CODE, FACT, FULL, SCRIPT, commit, make_shop, run, save, write

from aiaml_server.toolset import HookInput
from aiaml_server.toolsets.citations import MemoryService, cli, hooks
from aiaml_server.toolsets.requests import Request
from machine import git
from paths import ROOT

STALE = "def price(order):\n    return max(order)\n"
SINGLE_QUOTED = "---\nid: mem-single\nsubject: 'in other YAML'\n---\nx\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a memory, in which the test works."""
    path = make_shop(tmp_path / "shop with space")
    save(path, "prices.py:2")
    monkeypatch.chdir(path)
    return path


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code and what it prints."""
    try:
        code = cli.main(words)
    except SystemExit as exit_:  # argparse has printed help or a usage error
        code = int(exit_.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_each_command(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it prints, as text and as JSON."""
    (memory_id,) = MemoryService(shop).store.ids()
    write(shop, "gap.py", "a\n\nb\n")
    words = ("--cite", "prices.py:1-2", "--link", f"supersedes:{memory_id}", "--tag", "t")
    code, out, err = call(capsys, "save", "Newer", "--content", "**Fact**: x", *words)
    assert (code, out[:15]) == (0, "saved memories/") and "lacks **Action**" in err
    newer = out.split("/")[1].removesuffix(".md\n")
    assert call(capsys, "save", "--id", newer, "--tag", "u", "--json")[1].startswith("{")
    for line, part in (
        (f"get {newer}", "**Fact**: x"),
        ("list", f"{memory_id}  Prices are in cents"),
        ("list --tag u", newer),
        ("search cents", f"{memory_id}  Prices are in cents  ("),
        ("search --path prices.py", newer),
        ("search --verify --limit 1 newer", newer),
        ("graph", newer),
        (f"graph {newer} --depth 1", f'"target": "{memory_id}"'),
        ("verify", ""),
        ("sync-index", '"memories": 2'),
        (f"delete {newer}", f'"path": "memories/{newer}.md"'),
    ):
        code, out, err = call(capsys, *line.split())
        assert code == 0 and part in out, line
        if line.startswith("delete"):
            assert "`git restore`" in err
        else:
            assert json.loads(call(capsys, *line.split(), "--json")[1]) is not None
    for line, code, part in (
        ("search zebra", 1, ""),
        ("get mem-none", 1, "there is no memory mem-none"),
        ("delete mem-none", 1, "there is no memory mem-none"),
        ("save x --link nowhere", 2, "links: nowhere: must be TYPE:ID, and TYPE one of related, "),
        ("save x --link reltated:mem-x", 2, "citations: links: reltated:mem-x must be TYPE:ID"),
        ("save x --link blocks:", 2, "citations: links: blocks: must be TYPE:ID"),
        ("save x --cite prices.py:9", 2, "prices.py:9: the last line is 2\n"),
        ("save x --cite prices.py:2-9", 2, "prices.py:2-9: the last line is 2\n"),
        ("save x --cite gap.py:2", 2, "gap.py:2: the line is empty\n"),
        ("nonsense", 2, "invalid choice"),
        ("--repo /nowhere list", 2, "usage"),
    ):
        assert (
            call(capsys, *line.split(), *(["--content", FACT] if "save" in line else []))[0] == code
        )
        assert (
            part in call(capsys, *line.split(), *(["--content", FACT] if "save" in line else []))[2]
        )
    assert call(capsys, "--help")[0] == call(capsys, "verify", "--help")[0] == 0
    with mock.patch.object(MemoryService, "verify_all", None):
        assert call(capsys, "verify")[0] == 2  # a fault of the program is no verdict


def test_a_path_may_be_relative_to_the_working_directory(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or to the top, or absolute."""
    write(shop, "lib/a.py", "x = 1\n")
    monkeypatch.chdir(shop / "lib")
    for place in ("a.py:1", "lib/a.py#L1", f"{shop}/lib/a.py:1"):
        assert (
            call(capsys, "save", f"About {place[-9:]}", "--content", FACT, "--cite", place)[0] == 0
        )
    assert call(capsys, "search", "--path", "a.py")[1].count("mem-about") == 3


def test_verify_with_files_blames_this_change_and_no_other(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only memories that cite the files, or are the files; a broken one elsewhere is no matter."""
    write(shop, "tea.py", "pot = 1\n")
    tea = save(shop, "tea.py:1", subject="Tea")
    write(shop, "prices.py", STALE)
    write(shop, "memories/mem-bad.md", "bad\n")
    write(shop, "other.txt", "no memory cites it\n")
    for words, expected in (
        (("tea.py",), 0),
        ((f"memories/{tea}.md", "other.txt"), 0),
        (("tea.py", "prices.py"), 1),
        (("memories/mem-bad.md",), 2),
        ((), 2),
    ):
        assert call(capsys, "verify", *words)[0] == expected, words
    _, out, err = call(capsys, "verify", "prices.py")
    assert "prices.py:2 changed" in out and "says: Prices are in cents." in out
    assert "closest line is 2" in out and "1 checked, 1 stale, 0 unseen" in err


def test_verify_counts_what_is_unsure(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Copies of a cited line are neither valid nor stale; a line without its like is said so."""
    write(shop, "prices.py", CODE * 2)
    code, _, err = call(capsys, "verify")
    assert (code, err) == (0, "1 checked, 0 stale, 0 unseen, 1 ambiguous, 0 not read\n")
    write(shop, "prices.py", "@\n")
    assert "prices.py:2 changed, no line is like it, was: " in call(capsys, "verify")[1]


@pytest.mark.skipif(os.name == "nt", reason="a pipe without a reader is another error there")
def test_a_closed_pipe_ends_the_output(shop: Path) -> None:
    """As in `list | head -1`: without a word."""
    for words in (BARE, FULL):
        reader, writer = os.pipe()
        os.close(reader)
        command = [*words, "list"]
        done = subprocess.run(  # noqa: PLW1510
            command, cwd=shop, stdout=writer, stderr=subprocess.PIPE, timeout=60
        )
        os.close(writer)
        assert done.returncode and done.stderr == b""


def test_verify_of_a_file_that_is_not_there(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error that names it, unless it was deleted and a memory cites it: then that is stale."""
    for words in (("pries.py",), ("pries.py", "prices.py")):
        code, out, _ = call(capsys, "verify", *words)
        assert code == 2 and "pries.py: not read: there is no such file, and no" in out
    (shop / "prices.py").unlink()
    code, out, _ = call(capsys, "verify", "prices.py")
    assert code == 1 and "prices.py:2 missing" in out


def test_verify_updates_lines_and_times(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where code has moved, or its file was renamed; the rest of the file stays."""
    (memory_id,) = MemoryService(shop).store.ids()
    file = shop / "memories" / f"{memory_id}.md"
    text = file.read_text("utf-8").replace("tags: []", "tags: []\nowner: Ada # stays")
    file.write_text(text, "utf-8")
    (shop / "prices.py").unlink()
    write(shop, "lib/prices.py", f"\n\n{CODE}")
    git(shop, "add", "--all")
    code, out, err = call(capsys, "verify", "--update")
    assert code == 0 and "renamed, today lib/prices.py:4" in out and "1 checked" in err
    (citation,) = MemoryService(shop).store.get(memory_id).citations
    assert str(citation) == "lib/prices.py:4"
    assert "owner: Ada # stays" in file.read_text("utf-8")
    assert call(capsys, "verify")[1] == ""


def three_states(shop: Path, words: Sequence[str], **variables: str) -> None:
    """See that a command exits with 0, 1 and 2, and says why."""
    assert run(words, shop, **variables).returncode == 0
    write(shop, "prices.py", STALE)
    done = run(words, shop, **variables)
    assert done.returncode == 1 and "prices.py:2" in done.stdout, done.stderr
    write(shop, "memories/mem-bad.md", "bad\n")
    done = run(words, shop, **variables)
    assert done.returncode == 2 and "mem-bad.md:" in done.stdout, done.stderr
    assert "not read: the first line is not ---" in done.stdout


def test_the_standard_library_is_enough(shop: Path) -> None:
    """For files in canonical form; others are named as not read, and `verify` is never 0."""
    (memory_id,) = MemoryService(shop).store.ids()
    for line in ("list", "search cents", f"get {memory_id}", "verify", "verify prices.py", "graph"):
        assert run([*BARE, *line.split()], shop).returncode == 0, line
    write(shop, "memories/mem-single.md", SINGLE_QUOTED)
    for words in ((), ("prices.py",)):
        done = run([*BARE, "verify", *words], shop)
        assert done.returncode == 2 and "not in canonical form" in done.stdout
    assert "mem-single.md" in run([*BARE, "list"], shop).stderr
    assert run([*FULL, "verify"], shop).returncode == 0
    (shop / "memories" / "mem-single.md").unlink()
    three_states(shop, [*BARE, "verify"])
    code = "import sys, runpy; sys.version_info = (3, 9)"
    code += "; runpy.run_path(sys.argv[1], run_name='__main__')"
    done = run([sys.executable, "-c", code, str(SCRIPT)], shop)
    assert (done.returncode, done.stderr) == (2, "this needs Python 3.10 or later\n")


def test_the_hook_of_pre_commit(shop: Path) -> None:
    """Its entry, run as pre-commit runs it: with the files of the commit."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    (hook,) = (each for each in yaml.safe_load(text) if each["id"] == "aiaml-citations-verify")
    assert hook["language"] == "python" and hook["require_serial"]
    program, *words = shlex.split(hook["entry"])
    assert program == "aiaml"  # a command that the package installs
    words = [sys.executable, "-m", "aiaml_server", *words]
    write(shop, "prices.py", STALE)
    write(shop, "README.md", "fine\n")
    assert run([*words, "README.md"], shop).returncode == 0
    assert run([*words, "README.md", "prices.py"], shop).returncode == 1


@pytest.mark.slow
def test_a_commit_hook_in_a_real_clone(shop: Path, tmp_path: Path) -> None:
    """Git refuses the commit that makes a memory stale, and no other."""
    commit(shop)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(shop), str(clone))
    script = (
        f"#!/bin/sh\ngit diff --cached --name-only -z | xargs -0 {shlex.join([*BARE, 'verify'])}\n"
    )
    write(clone, ".git/hooks/pre-commit", script)
    (clone / ".git/hooks/pre-commit").chmod(0o755)
    write(clone, "README.md", "fine\n")
    commit(clone)
    write(clone, "prices.py", STALE)
    with pytest.raises(AssertionError, match=r"prices\.py:2 changed"):
        commit(clone)


def test_the_action(shop: Path) -> None:
    """Its step, as GitHub runs it: annotations and the exit code, no input is run as code."""
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("the action's shell is bash")
    action = yaml.safe_load((ROOT / ".github/actions/citations/action.yml").read_text("utf-8"))
    (step,) = action["runs"]["steps"]
    assert "${{" not in step["run"]
    assert set(step["env"]) == {name.upper() for name in action["inputs"]}
    variables = {
        "PYTHON": sys.executable,
        "REPOSITORY": str(shop),
        "GITHUB_ACTION_PATH": str(ROOT / ".github" / "actions" / "citations"),
    }
    words = [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    three_states(shop, words, **variables)
    shown = run(words, shop, **variables).stdout
    assert "::error file=memories/mem-prices-are-in-cents-" in shown
    assert ".md::prices.py:2 changed, the closest line is 2" in shown
    assert "::error file=memories/mem-bad.md::not read: the first line is not ---" in shown


def test_a_memory_gives_ci_and_terminals_no_command(shop: Path) -> None:
    """Whatever a pull request adds: only the annotations of verify begin with `::`."""
    planted = ["::add-mask::e", "::set-output name=x::y", "##[set-output name=a]b", "\x1b[31mred"]
    for number, text in enumerate(planted):
        quoted = json.dumps(text)
        head = f"id: mem-x-{number}\nsubject: {quoted}\ncitations:\n  - path: {quoted}\n    line: 1"
        write(
            shop, f"memories/mem-x-{number}.md", f"---\n{head}\n---\n\n{text}\n**Fact**: {text}\n"
        )
    for line in ("verify", "verify --github", "verify --json", "list", "get mem-x-0",
                 "search --path ::add-mask::e", "graph"):  # fmt: skip
        done = run([*BARE, *line.split()], shop)
        for printed in (done.stdout + done.stderr).splitlines():
            ours = "github" in line and printed.startswith("::error file=memories/")
            rest = printed.removeprefix("::") if ours else printed
            assert not rest.strip().startswith("::") and "##[" not in rest and "\x1b" not in rest


def test_hooks_around_an_edit(shop: Path) -> None:
    """Before it the memories that cite the file, after it those that became stale."""
    (memory_id,) = MemoryService(shop).store.ids()
    event = HookInput("before_edit", directory=str(shop), path=str(shop / "prices.py"))
    (line,) = hooks.before_edit(event)
    assert line == f"{memory_id} (Prices are in cents): Prices are in cents."
    assert hooks.after_edit(event) == []
    write(shop, "prices.py", STALE)
    line, request = hooks.after_edit(event._replace(path="prices.py"))
    assert isinstance(request, Request)
    assert line.endswith("cites prices.py:2 changed") and "memory_save" in request
    for path in ("other.py", "", "/etc/passwd"):
        assert hooks.before_edit(event._replace(path=path)) == []
        assert hooks.after_edit(event._replace(path=path)) == []


def test_the_skill_is_printed(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As Claude Code reads it."""
    code, out, _ = call(capsys, "skill")
    assert code == 0 and shop.is_dir()
    head = yaml.safe_load(out.split("---")[1])
    assert head["name"] == "code-memories" and head["description"]
    for name in ("memory_search", "memory_verify", "memory_graph_traverse"):
        assert name in out
