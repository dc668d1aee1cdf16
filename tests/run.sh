#!/bin/sh
# Installs what the tests need, then runs ruff, mypy and pytest; ends with pytest's closing line.
#
#   tests/run.sh [--all] [--lowest] [pytest arguments]
#
#   --all     on every Python from 3.10 that is found, one after the other
#   --lowest  with the oldest versions of the dependencies that pyproject.toml allows
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$here"
all='' resolution=highest
while [ $# -gt 0 ]; do
    case $1 in
    --all) all=yes ;;
    --lowest) resolution=lowest-direct ;;
    *) break ;;
    esac
    shift
done

version_of() {
    "$1" -c 'import sys; v = sys.version_info; print(f"{v[0]}.{v[1]}" if v >= (3, 10) else "")' 2>/dev/null || true
}

# Every interpreter that could be meant, the one called python3 first.
candidates() {
    command -v python3 python || true
    for minor in 10 11 12 13 14 15; do
        command -v "python3.$minor" || true
        for path in "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python; do
            if [ -x "$path" ]; then echo "$path"; fi
        done
    done
}

seen=''
list='' # the interpreters to test on, one for each version
for python in $(candidates); do
    version=$(version_of "$python")
    case " $seen " in *" ${version:-none} "*) continue ;; esac
    if [ -z "$version" ]; then continue; fi
    seen="$seen $version"
    list="$list $python"
    if [ -z "$all" ]; then break; fi
done
if [ -z "$list" ]; then
    echo "tests/run.sh: Python 3.10 or newer is needed, and not on the PATH" >&2
    exit 1
fi

# The certificates that pip trusts, those of the machine, for uv (its old and its new name) and npm.
export UV_NATIVE_TLS=true UV_SYSTEM_CERTS=true
bundle=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}
if [ -e "$bundle" ]; then export NODE_EXTRA_CA_CERTS="$bundle"; fi

install() { "$environment/bin/python" -m pip --quiet --disable-pip-version-check install "$@"; }

# pip comes with Python, and finds packages the way that the machine is set up for.
prepare() {
    if ! "$environment/bin/python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv --clear "$environment" || {
            echo "tests/run.sh: $python cannot make an environment: install venv (on Debian and Ubuntu" \
                "\`apt install python3-venv\`) and start again" >&2
            exit 1
        }
    fi
    if [ "$resolution" = highest ]; then
        install 'pip>=25.1' # the first that knows groups
        install --upgrade --upgrade-strategy eager --editable . --group dev
    else
        install 'uv>=0.8'
        "$environment/bin/uv" pip install --quiet --compile-bytecode --editable . --group dev \
            --python "$environment/bin/python" --resolution "$resolution"
    fi
}

for python in $list; do
    version=$(version_of "$python")
    environment=$here/.cache/test-$version-$resolution
    echo "== Python $version, $resolution versions"
    export TEST_RESOLUTION="$resolution" # of the wheel that is installed to be tested
    prepare
    PATH=$environment/bin:$PATH
    if [ "$resolution" = highest ]; then
        ruff check --quiet
        ruff format --quiet --check
        mypy
    fi
    if [ $# -eq 0 ]; then # most tests wait for other processes: a file of them on each processor
        python -m pytest --numprocesses auto --dist loadfile
    else
        python -m pytest "$@"
    fi
done
