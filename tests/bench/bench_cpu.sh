#!/usr/bin/env bash
# The cpu plugin beside llama.cpp: SmolLM2-135M (Q4_1) and a random 0.6B shape (Q8_0).  bench_cpu.sh BUILD VENV [PAIRS]
# Builds the peer once, outside the tree. Run it on a quiet machine: both sides share the cores with everything else.
set -euo pipefail
build=$(realpath "$1") venv=$(realpath "$2") pairs=${3:-7}
here=$(cd "$(dirname "$0")" && pwd)
cache=$HOME/.cache/ashlar
"$here/peer.sh" "$cache/peer"
bench=$cache/peer/llama.cpp/build/bin/llama-bench
model=$cache/qwen3-0.6b-q8_0.gguf
[ -f "$model" ] || "$venv/bin/python" "$here/make_gguf.py" "$model" --shape qwen3-0.6b --type q8_0
for file in "$venv/smollm2.gguf" "$model"; do
  "$venv/bin/python" "$here/bench_model.py" "$build/bin/ashlar" "$bench" "$file" --pairs "$pairs"
done
