#!/usr/bin/env bash
# What a newcomer sees: the plan, the address, one streamed answer. Serves until Ctrl-C.
#   first_run.sh ASHLAR PORT
set -euo pipefail
ashlar=$1 port=$2
spec=$(dirname "$0")/../../manifests/samples/demo.yaml
log=$(mktemp)
"$ashlar" serve -f "$spec" --port "$port" 2>"$log" &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 0' INT TERM
"$ashlar" plan -f "$spec"
until [ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/readyz")" = 200 ]; do
  if ! kill -0 $server 2>/dev/null; then cat "$log" >&2; exit 1; fi
  sleep 0.05
done
cat "$log"
question='Tell me a story about a fox named Ann.'
printf '\nServing model demo at http://127.0.0.1:%s/v1\n\nYou: %s\nDemo: ' "$port" "$question"
curl -sN "http://127.0.0.1:$port/v1/chat/completions" -H 'Content-Type: application/json' \
  -d "{\"model\": \"demo\", \"stream\": true, \"temperature\": 0, \"max_tokens\": 200, \"messages\": [{\"role\": \"user\", \"content\": \"$question\"}]}" |
  sed -un 's/^data: .*"content":"\(\([^"\\]\|\\.\)*\)".*/\1/p' | while IFS= read -r piece; do printf '%b' "$piece"; done
printf '\n\nAsk again with any OpenAI client; status at http://127.0.0.1:%s/status; Ctrl-C ends it.\n' "$port"
wait $server
