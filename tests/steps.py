"""What a piece of Python does to the disk and to the outside, in a process of its own.

It runs with every step noted, or is killed right before one of them, as the power would do it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

# Each step is [event, first argument]. What Python itself imports, reads or compiles is none.
_PRELUDE = """
import json, os, signal, sys
place, script, words = sys.argv[1], sys.argv[2], sys.argv[3:]
import portalocker, markdown_it, _strptime
import aiaml_server.toolsets.sessions.service, aiaml_server.toolsets.compartments.memory
OUTSIDE = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
           "os.system", "shutil.", "urllib.")
FILES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate")
steps, kill_at = [], 0
def step(event, argument):
    steps.append([event, str(argument)])
    if len(steps) == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
def hook(event, arguments):
    first = str(arguments[0]) if arguments else ""
    if event in FILES and first.startswith(place) or event.startswith(OUTSIDE):
        step(event, first)
def fsync(descriptor, sync=os.fsync):
    step("fsync", "")
    sync(descriptor)
def run():
    os.fsync = fsync
    sys.addaudithook(hook)
    sys.argv = ["script", *words]
    exec(script, {"__name__": "__main__"})
"""
_NOTED = _PRELUDE + "run(); print(json.dumps(steps))"
_KILLED = (
    _PRELUDE
    + """
for line in sys.stdin:
    kill_at = int(line)
    child = os.fork()
    if not child:
        run()
        sys.stdout.flush()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print("killed" if os.WIFSIGNALED(status) else f"ended {status}", flush=True)
"""
)


def steps(script: str, place: Path, words: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Run a script; return its steps below `place`, and programs and connections anywhere."""
    command = [sys.executable, "-c", _NOTED, str(place), script, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [(event, path) for event, path in json.loads(done.stdout.splitlines()[-1])]


def killed(script: str, place: Path, words: Sequence[str] = ()) -> Iterator[list[str]]:
    """Run a script again and again, killed before its first step, its second, …, until it ends.

    Yields what it had printed, each time; the caller makes the place what it was.
    """
    command = [sys.executable, "-c", _KILLED, str(place), script, *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin and process.stdout
        for number in range(1, 1000):
            process.stdin.write(f"{number}\n")
            printed = []
            for line in process.stdout:
                if line.startswith(("killed", "ended")):
                    break
                printed.append(line.strip())
            yield printed
            assert line.startswith(("killed", "ended 0")), "the script failed"
            if line.startswith("ended"):
                return
