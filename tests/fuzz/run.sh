#!/usr/bin/env bash
# Runs each fuzz target for SECONDS over a copy of its corpus; the first finding ends it.  run.sh BIN [SECONDS]
set -euo pipefail
bin=$(realpath "$1") seconds=${2:-60}
here=$(cd "$(dirname "$0")" && pwd)
for target in "$bin"/fuzz_*; do
  name=$(basename "$target")
  corpus=$(mktemp -d)
  cp "$here/corpus/${name#fuzz_}"/* "$corpus"/ 2>/dev/null || true
  echo "== $name, $seconds s"
  "$target" -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 -print_final_stats=1 "$corpus"
  rm -rf "$corpus"
done
