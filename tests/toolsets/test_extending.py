"""What docs/extending.md shows works: the toolset as a package of its own, the verb in a copy."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import aiaml_server
from client import Client
from environments import UV, environment
from paths import ROOT, TESTS
from printed import completed, inherited

PAGE = ROOT / "docs" / "extending.md"
PACKAGE = Path(aiaml_server.__file__).parent


def shown() -> dict[str, str]:
    """Return the files that the page shows, by the name that stands last before each."""
    found = {}
    before, *blocks = re.split(
        r"```(?:toml|python)\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    for code, behind in zip(blocks[::2], blocks[1::2], strict=True):
        name = re.findall(r"`([\w/.]+\.(?:toml|py))`", before)[-1]
        found[name] = code
        before = behind
    return found


# --- the toolset ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the page's package and install it beside this one; return where the programs are."""
    source = tmp_path_factory.mktemp("source")
    files = shown()
    for name in ["pyproject.toml", *(each for each in files if each.startswith("aiaml_words/"))]:
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text(files[name], encoding="utf-8")
    subprocess.run([UV, "build", "--quiet", "--wheel", str(source)], check=True, timeout=300)
    (wheel,) = (source / "dist").glob("*.whl")
    return environment(
        tmp_path_factory.mktemp("with") / "env", str(ROOT), str(wheel), "pytest"
    ).parent


@pytest.mark.network
@pytest.mark.slow
def test_a_toolset_from_another_package_inherits_the_contract(
    programs: Path, tmp_path: Path
) -> None:
    """Its tests run with nothing but pytest installed beside, and pass."""
    (tmp_path / "test_words.py").write_text(shown()["tests/test_words.py"], encoding="utf-8")
    command = [str(programs / "python"), "-m", "pytest", "-q", "test_words.py"]
    done = completed(command, env=inherited(), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d\d passed", done.stdout, re.MULTILINE)


def said(programs: Path, home: Path, *words: str, **environ: str) -> str:
    """Return what the installed `aiaml` prints."""
    own = {"HOME": str(home), "USERPROFILE": str(home), "AIAML_MEMORY_DIR": str(home / "base")}
    done = completed([programs / "aiaml", *words], env={**inherited(), **own, **environ})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.network
@pytest.mark.slow
def test_a_toolset_from_another_package_is_listed(programs: Path, tmp_path: Path) -> None:
    """Behind ours, with its tools and settings; and its name is known where one is mistyped."""
    shown = said(programs, tmp_path, "toolsets")
    own = "words  how many words a text has\n    count_words, total_words"
    assert shown.index("semantic") < shown.index(own)
    last = json.loads(said(programs, tmp_path, "toolsets", "--json"))[-1]
    assert last["name"] == "words"
    assert last["variables"] == ["AIAML_WORDS_BETWEEN", "AIAML_WORDS_DIR"]
    wrong = completed([programs / "aiaml-server", "--toolset", "wrds"])
    assert "did you mean words?" in wrong.stderr


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("words", [("aiaml", "serve"), ("aiaml-server",)])
def test_a_toolset_from_another_package_is_served(
    words: tuple[str, ...], programs: Path, tmp_path: Path
) -> None:
    """By its own tools alone, with its settings, and with failures that have a code."""
    command = (str(programs / words[0]), *words[1:], "--toolset", "words")
    settings = {"AIAML_WORDS_BETWEEN": "-", "AIAML_WORDS_DIR": str(tmp_path / "words")}
    with Client(tmp_path, command=command, environ=settings) as client:
        listed = client.answer(client.request("tools/list"))["result"]["tools"]
        assert [each["name"] for each in listed] == ["count_words", "total_words"]
        assert client.call("count_words", text="one-two three") == {"words": 2}
        for text in (5, "x" * 9001):
            assert client.call("count_words", text=text) == {
                "error": "InvalidInput",
                "message": "text: must be a text of at most 9,000 characters",
            }
        assert client.call("total_words") == {"words": 2}
    assert said(programs, tmp_path, "words", "total", **settings) == "2 words so far\n"


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "tool", "code", "sentence"),
    [
        ("total.lock", None, "count_words", "DiskError", "{} is a directory"),
        ("total", None, "total_words", "DiskError", "cannot read {}: it is a directory"),
        (
            "total",
            "1" * 101,
            "total_words",
            "DiskError",
            "cannot read {}: it is larger than 100 bytes",
        ),
        ("total", "ten", "count_words", "Damaged", "{} holds no number"),
    ],
)
def test_a_toolset_from_another_package_says_what_is_in_its_way(
    name: str, text: str | None, tool: str, code: str, sentence: str, programs: Path, tmp_path: Path
) -> None:
    """By a path, a remedy and a code; none is told to try again where that never helps."""
    path = tmp_path / "words" / name
    path.parent.mkdir()
    path.mkdir() if text is None else path.write_text(text)
    command = (str(programs / "aiaml-server"), "--toolset", "words")
    given = {"text": "one"} if tool == "count_words" else {}
    settings = {"AIAML_WORDS_DIR": str(path.parent)}
    with Client(tmp_path, command=command, environ=settings) as client:
        failed = {"error": code, "message": f"{sentence.format(path)}; move it away"}
        assert client.call(tool, **given) == failed


@pytest.mark.network
@pytest.mark.slow
def test_a_toolset_from_another_package_has_its_settings_examined(
    programs: Path, tmp_path: Path
) -> None:
    """A wrong one is named once, and not called ok; a mistyped one is asked back."""
    environ = {"AIAML_TOOLSETS": "words", "AIAML_WORDS_DIR": "here", "AIAML_WORDS_BETWEN": "-"}
    home = {"HOME": str(tmp_path), "AIAML_MEMORY_DIR": str(tmp_path / "base")}
    command = [str(programs / "aiaml"), "doctor", "settings", "toolsets", "--json"]
    found = json.loads(completed(command, env={**inherited(), **home, **environ}).stdout)
    (wrong,) = [each for each in found if "AIAML_WORDS_DIR" in each["found"]]
    assert wrong["level"] == "error" and "must be an absolute path" in wrong["found"]
    assert "did you mean AIAML_WORDS_BETWEEN?" in [each["remedy"] for each in found]


@pytest.mark.network
@pytest.mark.slow
def test_a_toolset_from_another_package_is_served_beside_ours(
    programs: Path, tmp_path: Path
) -> None:
    """In one server, and started a second time from no stale copy of the first answers."""
    command = (str(programs / "aiaml-server"), "--toolset", "words", "--toolset", "aiaml")
    for _ in range(2):
        with Client(tmp_path, command=command) as client:
            listed = client.answer(client.request("tools/list"))["result"]["tools"]
            assert [each["name"] for each in listed] == [
                "remember", "think", "recall", "count_words", "total_words",
            ]  # fmt: skip
            client.remember("x")
    assert not list(tmp_path.rglob("greeting*"))


@pytest.mark.network
@pytest.mark.slow
def test_a_toolset_from_another_package_is_connected(programs: Path, tmp_path: Path) -> None:
    """Cursor starts it, with the setting that is set; doctor makes its check where it is served."""
    (tmp_path / ".cursor").mkdir()
    settings = {"AIAML_WORDS_BETWEEN": "-"}
    said(programs, tmp_path, "install", "cursor", "--toolset", "words", **settings)
    entry = json.loads((tmp_path / ".cursor" / "mcp.json").read_text("utf-8"))
    environ = entry["mcpServers"]["aiaml"]["env"]
    assert environ["AIAML_TOOLSETS"] == "words"
    assert environ["AIAML_WORDS_BETWEEN"] == "-"
    found = said(programs, tmp_path, "doctor", "toolsets", "settings", "clients", **environ)
    assert "words are separated by -" in found
    assert "serves words" in found
    assert "no such setting" not in found


def test_uvx_starts_a_toolset_from_another_package(tmp_path: Path) -> None:
    """The entry names its package, by where it came from; a project's by its name alone."""
    offer(tmp_path / "site", "good-package", "fine", good("fine"))
    facts = tmp_path / "site" / "good_package-1.0.dist-info"
    (facts / "direct_url.json").write_text('{"url": "file:///somewhere/good.whl"}')
    home = tmp_path / "home"
    home.mkdir()
    uv = tmp_path / "archive-v0" / "x" / "bin"
    script = (
        "import sys; sys.prefix = sys.argv.pop(1); from aiaml_server.cli import main;"
        "sys.exit(main(sys.argv[1:]))"
    )
    for name in ("uv", "uvx"):
        program = tmp_path / f"{name}{'.exe' if os.name == 'nt' else ''}"
        program.write_text("")
        program.chmod(0o755)
    environ = {
        **inherited(), "PYTHONPATH": str(tmp_path / "site"), "HOME": str(home),
        "USERPROFILE": str(home), "UV": str(tmp_path / program.name.replace("uvx", "uv")),
        "PATH": str(tmp_path),
    }  # fmt: skip
    words = ["install", "--toolset", "fine", "--print", "cursor"]
    done = completed([sys.executable, "-c", script, str(uv), *words], env=environ)
    (server,) = json.loads(done.stdout)["mcpServers"].values()
    assert server["args"][:2] == ["--with", "good-package @ file:///somewhere/good.whl"]
    words = ["install", "cursor", "--project", str(home), "--toolset", "fine"]
    completed([sys.executable, "-c", script, str(uv), *words], env=environ)
    entry = json.loads((home / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"]
    assert entry["aiaml-fine"]["command"] == "uvx"
    assert entry["aiaml-fine"]["args"] == ["--with", "good-package", "aiaml-server"]


def offer(place: Path, package: str, name: str, code: str) -> None:
    """Put a package into a directory as an installer would, with one entry point."""
    module = package.replace("-", "_")
    facts = place / f"{module}-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[aiaml.toolsets]\n{name} = {module}:MANIFEST\n")
    (place / f"{module}.py").write_text(code)


def good(name: str, verbs: str = "") -> str:
    """Return the module of a manifest whose tools are nowhere."""
    stated = f"{name!r}, 'a summary', ('tool',), (), 'no_such_module:build', {verbs!r}"
    return f"from aiaml_server.toolset import Manifest\nMANIFEST = Manifest({stated})"


@pytest.mark.gate_cases(3)
@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        (
            "broken",
            "import no_such_module",
            "No module named 'no_such_module'",
        ),
        ("broken", "raise SystemExit('leaving')", "SystemExit: leaving"),
        ("broken", "MANIFEST = 5", "bad_package:MANIFEST is no Manifest of that name"),
        ("broken", good("other"), "is no Manifest of that name"),
        ("broken", good("broken").replace("('tool',)", "('tool')"), "tools that are no tuple"),
        ("broken", good("broken").replace("('tool',)", "5"), "tools that are no tuple"),
        ("broken", good("broken").replace("(), 'no", "('X',), 'no"), "no tuple of Variable"),
        ("broken", good("broken", "toy_verbs.toy"), "for its verbs, and a place is module:name"),
        ("sessions", good("sessions"), "the name is one of ours"),
        ("Broken", good("Broken"), "a name has lower-case letters"),
    ],
)
def test_a_broken_toolset_of_another_package_is_one_sentence(
    name: str, code: str, sentence: str, tmp_path: Path
) -> None:
    """`aiaml toolsets` and whoever asks for it are told; all else is as it was."""
    offer(tmp_path / "site", "bad-package", name, code)
    offer(tmp_path / "site", "good-package", "fine", good("fine"))
    environ = {"PYTHONPATH": str(tmp_path / "site"), "AIAML_MEMORY_DIR": str(tmp_path / "base")}
    listed = run("toolsets", environ=environ)
    assert f"the toolset {name!r} of the package bad-package is left out" in listed.stderr
    assert sentence in " ".join(listed.stderr.split())
    assert "fine  a summary" in listed.stdout and "\nsessions  session logs" in listed.stdout
    assert "bad_package" not in run("--help", environ=environ).stdout
    if name == "broken":
        asked = run("serve", "--toolset", name, environ=environ, code=2)
        assert sentence in asked.stderr and asked.stderr.count("\n") == 1
        assert sentence in " ".join(run(name, "x", environ=environ, code=3).stderr.split())
    with Client(tmp_path / "base", environ=environ) as client:
        assert client.remember("x")["memory_id"]


def test_two_packages_with_one_name_are_both_left_out(tmp_path: Path) -> None:
    """Which of them was meant is not for us to say."""
    for package in ("one-package", "other-package"):
        offer(tmp_path / "site", package, "fine", good("fine"))
    listed = run("toolsets", environ={"PYTHONPATH": str(tmp_path / "site")})
    assert "of the package one-package and other-package is left out" in listed.stderr
    assert "fine" not in listed.stdout


def test_a_toolset_whose_tools_cannot_be_imported_is_one_sentence(tmp_path: Path) -> None:
    """At the start, as its manifest alone does not tell."""
    offer(tmp_path / "site", "good-package", "fine", good("fine"))
    asked = run(
        "serve", "--toolset", "fine", environ={"PYTHONPATH": str(tmp_path / "site")}, code=2
    )
    assert asked.stderr == (
        "aiaml-server: the toolset cannot be served: No module named 'no_such_module'\n"
    )


def test_verbs_of_a_toolset_from_another_package_are_verbs(tmp_path: Path) -> None:
    """And `--help` shows the toolset beside ours; a mistyped one is asked back."""
    offer(tmp_path / "site", "good-package", "fine", good("fine", "toy_verbs:toy"))
    offer(tmp_path / "site", "other-package", "mute", good("mute"))
    paths = os.pathsep.join((str(tmp_path / "site"), str(TESTS)))
    for name, meant in (("fien", ", but 'fine'"), ("mutee", "")):
        missed = run(name, environ={"PYTHONPATH": paths}, code=2).stderr
        assert f"there is no verb {name!r}{meant};" in missed
    assert run("fine", "say", environ={"PYTHONPATH": paths}).stdout == "said\n"
    failed = run("fine", "fail", environ={"PYTHONPATH": paths}, code=3).stderr
    assert "a mistake in the good-package: ZeroDivisionError" in " ".join(failed.split())
    assert re.search(
        r"^  fine +a summary$", run("--help", environ={"PYTHONPATH": paths}).stdout, re.MULTILINE
    )


def run(*words: str, environ: Mapping[str, str], code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command line of the tests' own environment."""
    command = [sys.executable, "-m", "aiaml_server", *words]
    done = completed(command, env={**inherited(), **environ})
    assert done.returncode == code, done.stderr
    return done


# --- what is public -------------------------------------------------------------------------------


def public() -> list[str]:
    """Return the modules that the page declares to be public."""
    return re.findall(r"^\| `aiaml_server\.(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)


def test_the_public_modules_are_those_with_a_list_of_names() -> None:
    """Each says in its `__all__` what is promised, and no other module of the root does."""
    listed = {
        path.stem for path in PACKAGE.glob("[!_]*.py") if "\n__all__ = [" in path.read_text("utf-8")
    }
    assert set(public()) == listed
    assert len(listed) == 7


@pytest.mark.parametrize("module", public())
def test_every_public_name_says_what_it_is(module: str) -> None:
    """By a docstring, also of its methods; a constant by the words under or behind it."""
    names = importlib.import_module(f"aiaml_server.{module}").__all__
    described = described_in(f"aiaml_server.{module}")
    assert set(names) <= described, set(names) - described
    assert len(set(names)) == len(names)


def described_in(module: str) -> set[str]:
    """Return the names that say what they are, those included that come from another module."""
    source = Path(str(importlib.import_module(module).__file__)).read_text("utf-8")
    lines, body = source.splitlines(), ast.parse(source).body
    described = set()
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            told = [node, *(each for each in methods if isinstance(node, ast.ClassDef))]
            if all(ast.get_docstring(each) or each.name.startswith("_") for each in told):
                described.add(node.name)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            text = isinstance(following, ast.Expr) or "  # " in lines[node.lineno - 1]
            described |= {ast.unparse(each) for each in targets} if text else set()
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("aiaml_server."):
            described |= {each.name for each in node.names} & described_in(str(node.module))
    return described


# --- the verb -------------------------------------------------------------------------------------


def test_the_verb_of_the_page_is_one(tmp_path: Path) -> None:
    """With its help, and a memory to measure."""
    copy = tmp_path / "package" / "aiaml_server"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "cli" / "size.py").write_text(shown()["cli/size.py"], encoding="utf-8")
    (line,) = re.findall(r"`(\"size\": \(\"size:size\", .*\))`", PAGE.read_text(encoding="utf-8"))
    app = copy / "cli" / "app.py"
    text = app.read_text(encoding="utf-8")
    assert text.count("VERBS = {") == 1
    app.write_text(text.replace("VERBS = {", f"VERBS = {{\n    {line},"), encoding="utf-8")
    environ = {"PYTHONPATH": str(copy.parent), "AIAML_MEMORY_DIR": str(tmp_path / "base"),
               "AIAML_ENABLE_SYNC": "false"}  # fmt: skip
    run("remember", "twelve bytes", "-t", "size", environ=environ)
    assert run("size", environ=environ).stdout == "12 bytes\n"
    assert "Say how large all memories are together." in run("--help", environ=environ).stdout
