#!/bin/sh
# Installs what the tests need, lints, checks types and runs pytest; ends with pytest's closing line.
#
#   tests/run.sh [--quick | --full | --lint | --types] [--fresh] [--all] [--lowest] [pytest arguments]
#
#   --quick   what is pure and a little of one real server: a minute on two cores
#   --full    all tests with all examples, also simulators, figures and packaging: what decides whether
#             a change may land
#   --lint    ruff alone
#   --types   mypy alone
#   --fresh   the newest packages, lint and types as if nothing had been done before
#   --all     on every Python from 3.10 that is found, one after the other
#   --lowest  with the oldest versions of the dependencies that pyproject.toml allows
#
# Packages are installed again when pyproject.toml changed or a week has passed; lint and types are
# skipped while no source has changed since they last passed, and with pytest arguments.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$here"
tier=usual all='' fresh='' resolution=highest
while [ $# -gt 0 ]; do
    case $1 in
    --quick) tier=quick ;;
    --full) tier=full ;;
    --lint) tier=lint ;;
    --types) tier=types ;;
    --fresh) fresh=yes ;;
    --all) all=yes ;;
    --lowest) resolution=lowest-direct ;;
    -h | --help)
        sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$here/tests/run.sh"
        exit
        ;;
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

# The tests start many programs: none is to compile all sources anew.
unset PYTHONDONTWRITEBYTECODE

# What was done before stands in $environment/.passed/: for each stage, the sum of what it read.
is_done() { [ -z "$fresh" ] && [ "$(cat "$environment/.passed/$1" 2>/dev/null)" = "$2" ]; }
mark_done() {
    mkdir -p "$environment/.passed"
    echo "$2" >"$environment/.passed/$1"
}

# stage NAME SUM COMMAND...: runs a command, unless it passed with this sum, and says how long it took.
stage() {
    name=$1 sum=$2
    shift 2
    if is_done "$name" "$sum"; then
        echo "== $name: nothing has changed since it passed"
        return
    fi
    started=$(date +%s)
    "$@"
    mark_done "$name" "$sum"
    echo "== $name: $(($(date +%s) - started)) s"
}

# pip comes with Python, and finds packages the way that the machine is set up for. uv, where it is,
# takes a tenth of the time.
install() {
    if ! "$environment/bin/python" -m pip --version >/dev/null 2>&1; then
        "$python" -m venv --clear "$environment" || {
            echo "tests/run.sh: $python cannot make an environment: install venv (on Debian and Ubuntu" \
                "\`apt install python3-venv\`) and start again" >&2
            exit 1
        }
    fi
    uv=$environment/bin/uv
    if [ ! -x "$uv" ]; then uv=$(command -v uv || true); fi
    pip="$environment/bin/python -m pip --quiet --disable-pip-version-check install"
    if [ "$resolution" != highest ] && [ -z "$uv" ]; then
        $pip 'uv>=0.8'
        uv=$environment/bin/uv
    fi
    if [ -n "$uv" ] && "$uv" pip install --quiet --compile-bytecode --upgrade --editable . \
        --group "$group" --python "$environment/bin/python" --resolution "$resolution"; then
        return
    fi
    if [ "$resolution" != highest ]; then exit 1; fi
    $pip 'pip>=25.1' # the first that knows groups
    $pip --upgrade --upgrade-strategy eager --editable . --group "$group"
}

prepare() {
    sum=$({ echo "$here" && cat pyproject.toml src/aiaml_server/__init__.py; } | cksum)
    old=$(find "$environment/.passed/install-$group" -mtime +6 2>/dev/null || true)
    if [ -n "$old" ]; then rm -f "$old"; fi
    if ! is_done "install-$group" "$sum"; then
        echo "== install: the group \`$group\` into ${environment#"$here/"}; minutes, the first time"
        rm -rf "$environment/.passed" # other linters may say other things
    fi
    stage "install-$group" "$sum" install
    if [ "$group" = all ]; then mark_done install-dev "$sum"; fi
}

lint() {
    ruff check --quiet
    ruff format --quiet --check
}

sum_of_sources() {
    find . -path './.?*' -prune -o -type f \( -name '*.py' -o -name pyproject.toml \) -exec cksum {} + |
        LC_ALL=C sort | cksum
}

# One process, where several would only cost or could not be talked to; what is named is not left out.
processes=auto usual='not slow'
for word in "$@"; do
    case $word in
    -s | --capture=no | --pdb | --trace | --co | --collect-only | -n* | --numprocesses*) processes=0 ;;
    *::*) processes=0 usual='' ;;
    *.py) usual='' ;;
    esac
done

tests() { python -m pytest --numprocesses "$processes" -m "$@"; }

group=all
case $tier in quick | lint) group=dev ;; esac
for python in $list; do
    version=$(version_of "$python")
    environment=$here/.cache/test-$version-$resolution
    echo "== Python $version, $resolution versions"
    prepare
    # What is installed to be tested, and what has to be there so that no test is left out in silence.
    export TEST_RESOLUTION="$resolution" TEST_GROUP="$group"
    PATH=$environment/bin:$PATH
    if [ $# -gt 0 ]; then
        echo '== lint, types: not with pytest arguments'
    elif [ "$resolution" = highest ]; then
        sources=$(sum_of_sources)
        if [ "$tier" != types ]; then stage lint "$sources" lint; fi
        case $tier in
        lint) ;;
        quick) echo '== types: not with --quick' ;;
        *) stage types "$sources" python -m mypy ;;
        esac
    fi
    case $tier in
    quick)
        echo '== tests: what is pure and a little of one real server; a minute on two cores'
        export HYPOTHESIS_EXAMPLES="${HYPOTHESIS_EXAMPLES:-10}"
        tests quick "$@"
        ;;
    usual)
        if [ $# -eq 0 ]; then
            echo '== tests: all that are not slow; about 11 minutes on two quiet cores'
            export HYPOTHESIS_EXAMPLES="${HYPOTHESIS_EXAMPLES:-50}"
        fi
        tests "$usual" "$@"
        ;;
    full)
        if [ $# -eq 0 ]; then echo '== tests: all; about 50 minutes on two quiet cores'; fi
        tests '' "$@"
        ;;
    esac
done
