#!/usr/bin/env bash
# The chart with helm 4 and helm 3, built once into the cluster tests' cache:  run.sh VENV
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
control_plane=$here/../cluster/control-plane.sh
"$control_plane" go || { echo "SKIPPED: chart tests"; exit 0; }
"$control_plane" build helm helm3 kubectl
tools=${KC_CACHE:-$HOME/.cache/ashlar/control-plane}/bin
for helm in helm helm3; do
  echo "== $("$tools/$helm" version --short)"
  "$1/bin/python" "$here/test_chart.py" "$tools/$helm"
  "$1/bin/python" "$here/test_monitoring.py" "$tools/$helm" "$tools/kubectl"
done
