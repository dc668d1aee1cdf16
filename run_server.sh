#!/bin/sh
# Starts the server from a checkout, after setting up what it needs; `./run_server.sh demo` shows it.
# Whatever is not the protocol goes to stderr: an MCP client reads stdout.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
AIAML_MEMORY_DIR=${AIAML_MEMORY_DIR:-$here/memory}
AIAML_LAUNCHER=$here/run_server.sh
export AIAML_MEMORY_DIR AIAML_LAUNCHER

venv=$here/.venv
ready=$venv/.ready # newer than pyproject.toml once everything is installed

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        if command -v "$name" >/dev/null && new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    echo "run_server.sh: Python 3.10 or newer is needed, and not on the PATH" >&2
    return 1
}

with_uv() {
    command -v uv >/dev/null || return 1
    [ -x "$venv/bin/python" ] || uv venv --quiet --python '>=3.10' "$venv" >&2 || return 1
    uv pip install --quiet --compile-bytecode --python "$venv/bin/python" --editable "$here" >&2
}

with_pip() {
    if [ ! -x "$venv/bin/pip" ]; then
        python=$(find_python) && "$python" -m venv --clear "$venv" >&2 || return 1
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$here" >&2
}

set_up() {
    echo "Setting up the server in $venv; this is done once." >&2
    with_uv || with_pip # which may know a package index or certificates that uv does not
    touch "$ready"
}

if [ ! -e "$ready" ] || [ "$here/pyproject.toml" -nt "$ready" ]; then set_up; fi
exec "$venv/bin/python" -m aiaml_server "$@"
