#!/usr/bin/env bash
# The operator, the chart and the runtime on a real control plane:  run.sh BUILD VENV [TEST...]
# BUILD holds bin/ashlar and bin/ashlar-hooks. Everything runs in namespaces of its own, so that nothing of it can be
# reached from outside, outlives it, or meets a port or an address of this machine.
set -euo pipefail
build=$(realpath "$1") venv=$(realpath "$2")
shift 2
here=$(cd "$(dirname "$0")" && pwd)
export KC_CACHE=${KC_CACHE:-$HOME/.cache/ashlar/control-plane}
apart=(unshare --net --mount --pid --ipc --fork --mount-proc --kill-child)
[ "$(id -u)" = 0 ] || apart+=(--user --map-root-user)
skip() {
  echo "SKIPPED: cluster tests: $*" >&2
  exit 0
}
"$here/control-plane.sh" go || skip "no Go to build the control plane with"
"${apart[@]}" sh -c 'ip link add br0 type bridge && mount -t tmpfs none /mnt' || skip "no namespaces in which to have networks and mounts"
"$here/control-plane.sh" build
exec "${apart[@]}" "$here/sandbox.sh" "$build" "$venv" "$@"
