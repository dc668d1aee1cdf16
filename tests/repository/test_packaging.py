"""What is published: the wheel, its ways to start, and documents that say what is so."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import click
import pytest

from aiaml_server import __version__, settings, toolsets
from aiaml_server.cli.app import COMMANDS, aiaml
from aiaml_server.clients import launch
from client import Client
from environments import ROOT, UV, environment
from printed import completed, inherited

DISTRIBUTIONS = {
    "yaml": "pyyaml",
    "markdown_it": "markdown-it-py",
    "git": "gitpython",
    "pydantic_core": "pydantic",  # of which each version has one of its own
}
"""What installs a module, where it is not called as that."""


def imported() -> set[str]:
    """Return the packages that the source imports anywhere, other than Python's and itself."""
    names: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add((node.module or "").partition(".")[0])
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "find_spec":
                names |= {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
    other = names - set(sys.stdlib_module_names) - {"aiaml_server", "tomllib"}
    other -= {"pytest"}  # of `testing`, which only tests import
    other -= {"agents", "langgraph", "pydantic_ai", "smolagents"}  # what an adapter is for
    return {DISTRIBUTIONS.get(name, name).replace("_", "-") for name in other}


def test_what_is_imported_is_declared_and_the_reverse() -> None:
    """Nothing comes along by chance with another package, which may drop it; nothing is idle."""
    if sys.version_info < (3, 11):
        pytest.skip("the standard library reads TOML from Python 3.11 on")
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    wanted = [*project["dependencies"], *extras]
    assert imported() == {re.match(r"[\w-]+", each)[0] for each in wanted}  # type: ignore[index]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as a release does."""
    out = tmp_path_factory.mktemp("dist")
    build = [UV, "build", "--quiet", "--wheel", "--out-dir", str(out), str(ROOT)]
    subprocess.run(build, check=True, timeout=300)
    (path,) = out.glob("*.whl")
    return path


@pytest.mark.network
@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_facts(wheel: Path) -> None:
    """Types, licence and bounded dependencies travel with it; tests do not."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        facts = archive.read(metadata).decode()
    assert wheel.name == f"aiaml_server-{__version__}-py3-none-any.whl"
    assert "aiaml_server/py.typed" in names
    pages = {path.name for path in (ROOT / "src/aiaml_server/web/static").iterdir()}
    assert {f"aiaml_server/web/static/{name}" for name in pages} <= set(names)
    assert any(name.endswith("/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"aiaml_server"}
    assert "License-Expression: MIT" in facts
    assert "Requires-Python: >=3.10" in facts
    required = re.findall(r"^Requires-Dist: (.*)$", facts, re.MULTILINE)
    assert any(requirement.startswith("mcp[cli]") for requirement in required)
    for requirement in required:
        assert ">=" in requirement and ",<" in requirement.replace("<", ",<", 1), requirement


def tracked() -> set[str]:
    """Return the files of the repository; skip where this is none, as in a source archive."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs the repository")
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True
    )
    return {name for name in done.stdout.split("\0") if name}


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build what a release has, twice: in two places, of files with other times and modes."""
    names = [name for name in tracked() if (ROOT / name).is_file()]
    built: list[Path] = []
    for number in (1, 2):
        place = tmp_path_factory.mktemp("twice") / ("source" * number)
        for name in names:
            target = place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
            os.utime(target, (10**9 * number, 10**9 * number))
            target.chmod((0o600, 0o664)[number - 1] | target.stat().st_mode & 0o111)
        out = place.parent / "dist"
        build = [UV, "build", "--quiet", "--out-dir", str(out), str(place)]
        subprocess.run(build, check=True, timeout=300)
        built.append(out)
    return built[0], built[1]


@pytest.mark.network
@pytest.mark.slow
def test_builds_are_reproducible_and_small(twice: tuple[Path, Path]) -> None:
    """Whoever builds a release again gets the same bytes, and an upload stays small."""
    first, second = ({path.name: path.read_bytes() for path in out.glob("*.*")} for out in twice)
    first.pop(".gitignore", None)
    second.pop(".gitignore", None)
    assert sorted(name.rpartition(".")[2] for name in first) == ["gz", "whl"]
    assert first == second
    limits = {"whl": 1_000_000, "gz": 2_500_000}  # tests and pictures with it
    assert all(len(data) < limits[name.rpartition(".")[2]] for name, data in first.items())


@pytest.mark.network
@pytest.mark.slow
def test_nothing_is_published_that_does_not_belong(twice: tuple[Path, Path]) -> None:
    """The source archive is the repository; no cache, memory, key or editor's file."""
    (path,) = twice[0].glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {each.name.partition("/")[2] for each in archive.getmembers() if each.isfile()}
    here = {name for name in tracked() if not name.startswith(".ci/")}
    assert names ^ here == {"PKG-INFO"}
    (path,) = twice[0].glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        kinds = {Path(name).suffix for name in archive.namelist() if ".dist-info/" not in name}
    data = {".html", ".css", ".js", ".svg", ".json", ".md", ".toml", ".txt"}
    assert kinds <= {".py", ".typed"} | data


def metadata(wheel: Path) -> Message:
    """Return what an index reads."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith("/METADATA")]
        return BytesParser().parsebytes(archive.read(name))


@pytest.mark.network
@pytest.mark.slow
def test_an_index_shows_the_readme_with_links_that_work_there(wheel: Path) -> None:
    """Each link and picture is absolute, at this version, and names a file that is there."""
    facts = metadata(wheel)
    page = facts.get_payload(decode=True)
    assert isinstance(page, bytes)
    text = page.decode()
    assert facts["Description-Content-Type"] == "text/markdown"
    targets = re.findall(r"(!?)\[(?:[^]]*)\]\(([^)]+)\)", text)
    assert targets and all(target.startswith("https://") for _, target in targets)
    (home,) = [each for each in facts.get_all("Project-URL", []) if each.startswith("Repository, ")]
    owner = home.partition("https://github.com/")[2]
    raw = f"https://raw.githubusercontent.com/{owner}/v{__version__}/"
    blob = f"https://github.com/{owner}/blob/v{__version__}/"
    ours = [each for each in targets if each[1].startswith((raw, blob))]
    assert len(ours) == len(re.findall(r"\]\((?!https:)", readme()))
    for picture, target in ours:
        assert target.startswith(raw if picture else blob)
        assert (ROOT / target.removeprefix(raw).removeprefix(blob).partition("#")[0]).exists()
    there = re.sub(r"\]\([^)]*\)", "]", text).strip()
    assert there == re.sub(r"\]\([^)]*\)", "]", readme()).strip()


@pytest.mark.network
@pytest.mark.slow
def test_an_index_has_the_facts_that_people_filter_by(wheel: Path) -> None:
    """Addresses, keywords, every Python, and an extra for each toolset that needs one."""
    facts = metadata(wheel)
    urls = dict(each.split(", ", 1) for each in facts.get_all("Project-URL", []))
    assert set(urls) == {"Repository", "Documentation", "Changelog", "Issues", "Security"}
    assert {"mcp", "memory", "agents"} <= set(facts["Keywords"].split(","))
    marks = facts.get_all("Classifier", [])
    pythons = [each.rpartition(" ")[2] for each in marks if " :: Python :: 3." in each]
    assert pythons == [f"3.{minor}" for minor in range(10, 16)]
    wanted = {toolsets.manifest(name).install for name in toolsets.OWN} - {""}
    assert wanted <= {f"aiaml-server[{each}]" for each in facts.get_all("Provides-Extra", [])}


@pytest.mark.network
@pytest.mark.slow
def test_an_index_takes_what_is_published(twice: tuple[Path, Path]) -> None:
    """`twine check --strict` and `check-wheel-contents` have nothing to say."""
    paths = sorted(str(path) for path in twice[0].glob("aiaml_server-*"))
    run = [UV, "tool", "run", "--quiet", "--no-config", "--from"]
    twine = [*run, "twine>=6,<8", "twine", "check", "--strict", *paths]
    contents = [*run, "check-wheel-contents>=0.6,<1", "check-wheel-contents", "--no-config"]
    for command in (twine, [*contents, next(path for path in paths if path.endswith(".whl"))]):
        done = completed(command, cwd=twice[0])
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.network
@pytest.mark.slow
def test_uvx_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """`uvx --from <the wheel> aiaml-server` serves."""
    command = [UV, "tool", "run", "--quiet", "--python", sys.executable, "--from", str(wheel)]
    with Client(tmp_path, command=[*command, "aiaml-server"]) as client:
        assert client.remember("x")["memory_id"]
        assert client.close() == 0


@pytest.mark.network
@pytest.mark.slow
def test_doctor_under_uvx_starts_the_program_of_uvx(wheel: Path, tmp_path: Path) -> None:
    """The same wheel, not what an index may have under the name; so do clients then."""
    command = [UV, "tool", "run", "--quiet", "--python", sys.executable, "--from", str(wheel)]
    done = completed(
        [*command, "aiaml", "doctor", "--offline", "version", "server"],
        cwd=tmp_path,
        env={**outside(tmp_path), "UV_CACHE_DIR": uv_cache()},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "starts and answers" in done.stdout


def uv_cache() -> str:
    """Return where uv keeps its cache, for tests with another home directory."""
    done = subprocess.run([UV, "cache", "dir"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.network
@pytest.mark.slow
def test_uv_runs_the_checkout(tmp_path: Path) -> None:
    """`uv run aiaml-server` serves."""
    command = [UV, "run", "--quiet", "--no-dev", "--python", sys.executable, "--project", str(ROOT)]
    environ = {"UV_PROJECT_ENVIRONMENT": str(tmp_path / "environment")}
    with Client(tmp_path / "base", command=[*command, "aiaml-server"], environ=environ) as client:
        assert client.remember("x")["memory_id"]
        assert client.close() == 0


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an empty environment, as pip and pipx do; return its programs.

    With the extra that a toolset needs to be served at all, so that it is shown as the others are.

    `TEST_RESOLUTION=lowest-direct` takes the oldest packages that it allows.
    """
    place = tmp_path_factory.mktemp("installed") / "environment"
    resolution = os.environ.get("TEST_RESOLUTION", "highest")
    wanted = f"aiaml-server[semantic] @ {wheel.as_uri()}"
    return environment(place, "--compile-bytecode", "--resolution", resolution, wanted).parent


def outside(place: Path) -> dict[str, str]:
    """Return an environment in which nothing of the checkout is in sight."""
    return {
        **inherited("PYTHON", "PYTEST", "VIRTUAL_ENV", "COV"),
        **dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME"), str(place)),
        "AIAML_MEMORY_DIR": str(place / "base"),
        "PYTHONUTF8": "1",
    }


@pytest.mark.network
@pytest.mark.slow
def test_an_installed_wheel_has_its_command(installed: Path, tmp_path: Path) -> None:
    """`aiaml-server` serves, and the demonstration says how a client starts it."""
    with Client(tmp_path / "base", command=[str(installed / "aiaml-server")]) as client:
        assert client.remember("x")["memory_id"]
    demo = subprocess.run(
        [installed / "aiaml-server", "demo"], capture_output=True, text=True, check=True
    )
    assert f"{installed / 'aiaml-server'} install --all\n" in demo.stdout
    words = [str(installed / "aiaml-server"), "install", "--print", "generic"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    config = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
    assert config["mcpServers"]["aiaml"]["command"] == str(installed / "aiaml-server")


@pytest.mark.network
@pytest.mark.slow
def test_where_people_are_all_is_well(installed: Path, tmp_path: Path) -> None:
    """Doctor finds nothing wrong with an installation that is not of the checkout."""
    done = completed(
        [installed / "aiaml", "doctor", "--offline"], cwd=tmp_path, env=outside(tmp_path)
    )
    assert done.stderr == "\nNothing is wrong.\n", done.stdout + done.stderr
    assert done.returncode == 0
    version = done.stdout.splitlines()[0]
    assert f" in {installed.parent}" in version
    assert "starts and answers" in done.stdout


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.timeout(900)  # all that other tests do, once more
def test_an_installed_wheel_does_what_the_transcripts_and_stories_say(
    installed: Path, tmp_path: Path
) -> None:
    """Every verb, every line that a person sees, and the specification's stories over MCP."""
    tests = [
        str(ROOT / "tests" / name) for name in ("cli/test_transcripts.py", "server/test_stories.py")
    ]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    root = Path(tmp_path.anchor, "tmp") if os.name == "posix" else None
    with tempfile.TemporaryDirectory(dir=root) as short:  # long paths are cut in messages
        words += [f"--basetemp={short}/t", "-c", str(ROOT / "pyproject.toml"), *tests]
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env={**outside(tmp_path), "TEST_PYTHON": str(installed / "python")},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    assert done.returncode == 0, done.stdout[-5000:]


def test_every_verb_is_in_a_transcript() -> None:
    """But for the two that speak MCP, which other tests here start."""
    lines = "".join(path.read_text("utf-8") for path in (ROOT / "tests/transcripts").glob("*.txt"))
    shown = set(re.findall(r"^\$ .*?\baiaml ([a-z-]+)", lines, re.MULTILINE))
    assert set(COMMANDS) - shown == {"demo"}


@pytest.mark.slow
def test_the_script_serves_the_checkout(tmp_path: Path) -> None:
    """`./run_server.sh` works from any directory, with nothing but the protocol on stdout.

    On Windows `run_server.cmd`, in the words that `aiaml install` has for it.
    """
    script = ROOT / f"run_server.{'cmd' if os.name == 'nt' else 'sh'}"
    command = launch.command_of({**os.environ, "AIAML_LAUNCHER": str(script)}, "", "", "")
    with Client(tmp_path, command=command) as client:
        assert client.call("think", keywords=["x"]) == []
        assert client.close() == 0


@pytest.mark.skipif(os.name != "posix", reason="run_server.cmd is its twin on Windows")
def test_the_script_runs_nothing_of_the_directory_it_is_started_in(tmp_path: Path) -> None:
    """Clients start it in a workspace, which may hold modules with the names of ours."""
    for name in ("aiaml_server", "click", "encodings", "importlib", "json", "pip", "venv"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    done = subprocess.run(
        [ROOT / "run_server.sh", "--version"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert __version__ in done.stdout, done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.name != "posix", reason="run_server.cmd is its twin on Windows")
def test_the_script_repairs_an_environment_that_no_longer_works(tmp_path: Path) -> None:
    """A moved checkout, a Python that was removed, and a machine that lacks venv at first."""
    checkout, programs = tmp_path / "a checkout", tmp_path / "bin"
    checkout.mkdir()
    programs.mkdir()
    shutil.copy(ROOT / "run_server.sh", checkout)
    (checkout / "pyproject.toml").touch()
    for name in ("sh", "cat", "dirname", "rm", "mkdir", "ln"):
        (programs / name).symlink_to(shutil.which(name) or name)

    def start() -> tuple[int, str, bool]:
        done = subprocess.run(
            [checkout / "run_server.sh", "status", "--json"],
            env={"PATH": str(programs), "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        base = json.loads(done.stdout)["directory"] if done.stdout else done.stderr
        return done.returncode, base, "Setting up" in done.stderr

    def program(name: str, script: str) -> None:
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)

    program("python3", 'case "$*" in *venv*) exit 1 ;; esac')
    code, output, _ = start()
    assert code == 1
    assert "apt install python3-venv" in output
    # There is no git on the path: `status` ends with 1.
    program("aiaml-server", f'exec {sys.executable} -m aiaml_server "$@"')
    makes = (
        '[ "$1" = pip ] && exit; for v; do :; done; mkdir -p "$v/bin"; '
        f'ln -s {sys.executable} "$v/bin/python"; ln -s {programs}/aiaml-server "$v/bin/"'
    )
    program("uv", makes)
    usual = str(tmp_path / ".aiaml")
    assert start() == (1, usual, True)
    assert start() == (1, usual, False)
    checkout = checkout.rename(tmp_path / "moved")
    assert start() == (1, usual, True)
    python = checkout / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to(tmp_path / "gone")
    assert start() == (1, usual, True)
    (checkout / "memory" / "files").mkdir(parents=True)
    assert start() == (1, str(checkout / "memory"), False)


def readme() -> str:
    """Return the README."""
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short_and_names_its_two_commands() -> None:
    """A person reads it in minutes."""
    assert readme().count("\n") < 150
    assert "./run_server.sh demo" in readme()
    assert "./tests/run.sh" in readme()


def test_documents_and_program_name_the_same_variables() -> None:
    """Every variable in the documents exists, and the reverse."""
    real = {each.name for each in (*settings.SETTINGS, *toolsets.SETTINGS)}
    assert set(re.findall(r"AIAML_\w+", readme())) == real
    shown = aiaml.get_help(click.Context(aiaml))
    assert set(re.findall(r"AIAML_\w+", shown)) == real
    registry = (ROOT / "server.json").read_text(encoding="utf-8")
    assert set(re.findall(r'"(AIAML_\w+)"', registry)) == real


def test_links_in_documents_lead_somewhere() -> None:
    """A relative link names a file that exists."""
    for document in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(
            r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")
        ):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_configuration_examples_in_the_readme_parse() -> None:
    """What a person copies is valid JSON."""
    blocks = re.findall(r"```json\n(.*?)```", readme(), re.DOTALL)
    assert blocks
    for block in blocks:
        assert "aiaml" in json.dumps(json.loads(block))


def test_the_changelog_has_the_current_version() -> None:
    """A release is described before it is made."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[(Unreleased|{re.escape(__version__)})\]", changelog, re.MULTILINE)
