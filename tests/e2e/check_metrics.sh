#!/bin/sh
# promtool's lint over a live scrape:  tests/e2e/check_metrics.sh http://127.0.0.1:8000
# The names made for vLLM's dashboards hold a colon, which promtool keeps for rules; they alone are
# left out.
set -eu
url=${1:?usage: check_metrics.sh URL}
page=$(curl --fail --silent --show-error "$url/metrics")
printf '%s\n' "$page" | grep -v '^\(# [A-Z]* \)\{0,1\}vllm:' | promtool check metrics
series=$(printf '%s\n' "$page" | grep -vc '^#')
echo "$series series"
test "$series" -le 2000
