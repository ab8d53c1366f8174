#!/usr/bin/env bash
# The real binary with real clients:  run.sh ASHLAR VENV.  VENV/smollm2.gguf is the real model; without it its tests are skipped.
set -euo pipefail
export ASHLAR=$(realpath "$1")
venv=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$venv/smollm2.gguf" ] && export SMOLLM2=$venv/smollm2.gguf
cd "$here"
for file in test_commands test_demo test_docs test_smollm2; do
  echo "== $file"
  "$venv/bin/python" "$file.py"
done

echo "== official clients and promtool against one server"
port=$("$venv/bin/python" -c 'import harness; print(harness.free_port())')
"$ASHLAR" serve -f "$here/../../manifests/samples/demo.yaml" --port "$port" 2>/tmp/ashlar-e2e-$port.log &
server=$!
trap 'kill $server 2>/dev/null || true; rm -f /tmp/ashlar-e2e-$port.log' EXIT
until curl -sf -o /dev/null "http://127.0.0.1:$port/readyz"; do
  if ! kill -0 $server || curl -s "http://127.0.0.1:$port/status" | grep -q '"phase":"rejected"'; then
    cat /tmp/ashlar-e2e-$port.log
    exit 1
  fi
  sleep 0.05
done
[ -d node_modules/openai ] || npm ci --silent --no-audit --no-fund
"$venv/bin/python" test_openai.py --url "http://127.0.0.1:$port" --rows CPU_PAGED,CPU_WINDOW --layout LBHNC
node test_openai.mjs --url "http://127.0.0.1:$port"
./check_metrics.sh "http://127.0.0.1:$port"
../monitoring/run.sh "http://127.0.0.1:$port" "$venv" "$(dirname "$ASHLAR")/ashlar-hooks"
kill $server
wait $server
echo "e2e: all passed"
