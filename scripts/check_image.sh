#!/bin/sh
# Builds the container's image and tries it: it is not root, it serves, and what one container
# remembers the next one finds in the volume.
set -eu
cd -- "$(dirname -- "$0")/.."
image=aiaml-check volume=aiaml-check-$$
trap 'docker volume rm --force "$volume" >/dev/null' EXIT

docker build --quiet --tag "$image" .
run() { docker run --interactive --rm --volume "$volume:/memory" "$@"; }

test "$(run --entrypoint id "$image" -u)" = 10001
told='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
told="$told"'"capabilities":{},"clientInfo":{"name":"check","version":"1"}}}'
echo "$told" | run "$image" | grep -q '"serverInfo"'
run "$image" demo </dev/null >/dev/null
run "$image" remember --topic check "Max likes carrots." </dev/null
run "$image" search carrots </dev/null
run "$image" log </dev/null | grep -q Max # in git, in the volume
