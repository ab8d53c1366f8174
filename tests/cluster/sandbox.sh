#!/usr/bin/env bash
# The first process of the namespaces that run.sh makes: networks of pods and Services, then the control plane, then the tests.
set -euo pipefail
build=$1 venv=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/ashlar-cluster.XXXXXX)
ip link set lo up
ip link add br0 type bridge
ip addr add 10.244.0.1/16 dev br0
ip link set br0 up
ip route add local 10.0.0.0/16 dev lo # every address of a Service is this machine
status=0
BUILD=$build WORK=$work KC_CACHE=$KC_CACHE SMOLLM2=$venv/smollm2.gguf "$venv/bin/python" "$here/main.py" "$@" || status=$?
if [ $status = 0 ] && [ -z "${KEEP:-}" ]; then
  rm -rf "$work"
else
  echo "cluster: logs are in $work" >&2
fi
exit $status
