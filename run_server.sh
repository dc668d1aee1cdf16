#!/bin/sh
# Start the server from a checkout. The first start installs its packages. `./run_server.sh demo` shows it.
# An MCP client reads stdout, so all messages go to stderr.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
AIAML_LAUNCHER=$here/run_server.sh
export AIAML_LAUNCHER

# If memory/ of the checkout has memories, serve them.
if [ -z "${AIAML_MEMORY_DIR:-}" ] && [ -d "$here/memory/files" ]; then
    AIAML_MEMORY_DIR=$here/memory
    export AIAML_MEMORY_DIR
fi

venv=$here/.venv
ready=$venv/.ready # contains the checkout's path; newer than pyproject.toml once everything is installed

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }

find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        if command -v "$name" >/dev/null && new_enough "$name"; then
            command -v "$name"
            return
        fi
    done
    echo "run_server.sh: Python 3.10 or newer is needed, but is not on the PATH" >&2
    return 1
}

with_uv() {
    command -v uv >/dev/null || return 1
    [ -x "$venv/bin/python" ] || uv venv --quiet --python '>=3.10' "$venv" >&2 || return 1
    uv pip install --quiet --compile-bytecode --python "$venv/bin/python" --editable "$here" >&2
}

with_pip() {
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        python=$(find_python) || return 1
        "$python" -m venv --clear "$venv" >&2 || {
            echo "run_server.sh: $python cannot make an environment: install venv (on Debian and Ubuntu" \
                "\`apt install python3-venv\`) or uv, and start again" >&2
            return 1
        }
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$here" >&2
}

works() {
    [ "$(cat "$ready" 2>/dev/null)" = "$here" ] && ! [ "$here/pyproject.toml" -nt "$ready" ] &&
        "$venv/bin/python" -c 'import aiaml_server' 2>/dev/null
}

set_up() {
    echo "Setting up the server in $venv: 40 packages, half a minute to two (only once)." >&2
    if ! "$venv/bin/python" -c '' 2>/dev/null; then rm -rf "$venv"; fi # its Python is gone
    with_uv || with_pip # pip may have a package index or certificates configured that uv does not know
    echo "$here" >"$ready"
    echo "Set up; starting." >&2
}

# With -c and -m, Python imports from the current directory, which may belong to anybody.
(cd "$here" && { works || set_up; })
exec "$venv/bin/aiaml-server" "$@"
