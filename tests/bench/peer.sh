#!/usr/bin/env bash
# Builds llama.cpp's llama-bench from the source that the npm package node-llama-cpp carries.  peer.sh FOLDER
set -euo pipefail
folder=$1
[ -x "$folder/llama.cpp/build/bin/llama-bench" ] && exit 0
mkdir -p "$folder"
cd "$folder"
[ -f package.json ] || npm init -y >/dev/null
npm install --silent --ignore-scripts --omit=optional node-llama-cpp@3.22.1
[ -d llama.cpp ] || git clone -q node_modules/node-llama-cpp/llama/gitRelease.bundle llama.cpp
cmake -S llama.cpp -B llama.cpp/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF \
  -DLLAMA_BUILD_EXAMPLES=OFF >/dev/null
ninja -C llama.cpp/build llama-bench
