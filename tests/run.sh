#!/bin/sh
# Run the gate: lint, types, architecture, and every test that is neither slow nor asks a registry.
#
#   tests/run.sh                          all of it
#   tests/run.sh [pytest arguments]       pytest only, for example: tests/run.sh tests/unit -k score
#
# Variables: PYTHON (default: the first Python 3.10 or newer), VENV (default: .cache/venv),
# RESOLUTION=lowest-direct for the oldest dependencies that pyproject.toml allows (needs uv),
# GROUP (default: dev), the dependency group to install.
set -eu
cd -- "$(dirname -- "$0")/.."

case ${1:-} in -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit ;; esac

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

python=${PYTHON:-}
for candidate in python3 python python3.14 python3.13 python3.12 python3.11 python3.10; do
    if [ -z "$python" ] && is_new_enough "$candidate"; then python=$candidate; fi
done
if [ -z "$python" ] || ! is_new_enough "$python"; then
    echo "tests/run.sh: Python 3.10 or newer is required. Install it, or set PYTHON to its path." >&2
    exit 1
fi

# uv, node and Python trust the certificates of the machine.
export UV_NATIVE_TLS=true UV_SYSTEM_CERTS=true
bundle=/etc/ssl/certs/ca-certificates.crt
if [ -e "$bundle" ]; then export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-$bundle}"; fi
unset PYTHONDONTWRITEBYTECODE # the tests start many processes; none should compile everything again

venv=${VENV:-.cache/venv}
group=${GROUP:-dev}
resolution=${RESOLUTION:-highest}
if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv" || {
        echo "tests/run.sh: cannot create $venv. On Debian and Ubuntu: apt install python3-venv" >&2
        exit 1
    }
fi
venv=$(cd "$venv" && pwd)

uv=$(command -v uv || true)
if [ -x "$venv/bin/uv" ]; then uv=$venv/bin/uv; fi
echo "== install the group $group into $venv"
if [ -z "$uv" ] || ! "$uv" pip install --quiet --python "$venv/bin/python" --editable . \
    --group "$group" --resolution "$resolution" --compile-bytecode; then
    if [ "$resolution" != highest ]; then exit 1; fi
    pip="$venv/bin/python -m pip --quiet --disable-pip-version-check install"
    $pip 'pip>=25.1' # the first version that knows dependency groups
    $pip --editable . --group "$group"
fi
export PATH="$venv/bin:$PATH"

if [ $# -eq 0 ]; then
    echo '== lint, types, architecture'
    ruff check --quiet
    ruff format --quiet --check
    python -m mypy
    lint-imports --no-cache
fi

echo '== tests'
exec python -m pytest --numprocesses 4 -m 'not slow and not network' "$@"
