#!/bin/sh
# Run everything that the gate leaves out. It takes hours; run it before a release and every night.
#
#   tests/nightly.sh            all parts; goes on after a part that fails, and lists these at the end
#   tests/nightly.sh PART...    some of: main lowest pythons
#
#   main      all tests, also slow and network ones, random seeds, 2,000 examples a property, and
#             coverage of at least 80 %. Hypothesis keeps failing examples in .hypothesis/.
#   lowest    the gate's tests and the packaging tests with the oldest allowed dependencies
#   pythons   the gate's tests on every other Python that is installed
set -u
cd -- "$(dirname -- "$0")/.."
failed=''

run() {
    name=$1
    shift
    echo "=== $name"
    env "$@" || failed="$failed $name"
}

main() {
    run main HYPOTHESIS_PROFILE=nightly GROUP=nightly tests/run.sh -m '' -n auto \
        --timeout 7200 --cov --cov-fail-under 80 --durations 40
}

lowest() {
    run lowest RESOLUTION=lowest-direct TEST_RESOLUTION=lowest-direct VENV=.cache/lowest \
        tests/run.sh tests
    run lowest-packaging RESOLUTION=lowest-direct TEST_RESOLUTION=lowest-direct \
        VENV=.cache/lowest tests/run.sh -m '' tests/repository/test_packaging.py
}

pythons() {
    for minor in 10 11 12 13 14 15; do
        for python in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python; do
            if "$python" -c '' 2>/dev/null; then
                run "python3.$minor" PYTHON="$python" VENV=".cache/python3.$minor" tests/run.sh tests
                break
            fi
        done
    done
}

for part in "${@:-all}"; do
    case $part in
    main | lowest | pythons) "$part" ;;
    all) main; lowest; pythons ;;
    *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p;}' "$0"; exit 2 ;;
    esac
done
if [ -n "$failed" ]; then
    echo "nightly: failed:$failed" >&2
    exit 1
fi
