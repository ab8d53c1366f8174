#!/usr/bin/env bash
# The operator, the chart and the runtime on a real control plane:  run.sh BUILD VENV [TEST...]
# BUILD holds bin/ashlar and bin/ashlar-hooks. Everything runs in namespaces of its own, so that nothing of it can be
# reached from outside, outlives it, or meets a port or an address of this machine.
set -euo pipefail
build=$(realpath "$1") venv=$(realpath "$2")
shift 2
here=$(cd "$(dirname "$0")" && pwd)
export KC_CACHE=${KC_CACHE:-$HOME/.cache/ashlar/control-plane}
"$here/control-plane.sh" go || { echo "SKIPPED: cluster tests"; exit 0; }
"$here/control-plane.sh" build
user=()
[ "$(id -u)" = 0 ] || user=(--user --map-root-user)
exec unshare "${user[@]}" --net --mount --pid --ipc --fork --mount-proc --kill-child "$here/sandbox.sh" "$build" "$venv" "$@"
