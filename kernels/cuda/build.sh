#!/usr/bin/env bash
# Builds libashlar_cuda.so into FOLDER for the compute capabilities given (80 89 90a 100a 120 when
# none is). Needs a C++20 compiler and nvcc 13: that of CUDACXX, of the PATH, of /usr/local/cuda, or
# of NVIDIA's PyPI wheels, which are installed under ~/.cache/ashlar/cuda13 when there is no other.
#   kernels/cuda/build.sh FOLDER [CAPABILITY...]
set -euo pipefail
out=$(realpath -m "$1")
shift
capabilities=("$@")
[ ${#capabilities[@]} -gt 0 ] || capabilities=(80 89 90a 100a 120)
cd "$(dirname "$0")/.."

wheels() {
  local venv=$HOME/.cache/ashlar/cuda13 root
  if [ ! -e "$venv/complete" ]; then
    echo "build.sh: installing nvcc 13.0 from PyPI into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q nvidia-cuda-nvcc==13.0.* nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.* \
      nvidia-cuda-crt==13.0.* nvidia-nvvm==13.0.* >&2
    root=$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13)
    ln -sfn lib "$root/lib64"
    touch "$venv/complete"
  fi
  echo "$venv"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc
}

nvcc=${CUDACXX:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || wheels)}
targets=()
for capability in "${capabilities[@]}"; do
  targets+=("-gencode=arch=compute_$capability,code=sm_$capability")
done
flags=(-std=c++20 -O3 -Iinclude -I. -DASHLAR_GPU_CUDA -Xcompiler=-fPIC,-Wall,-Wextra,-Wno-unknown-pragmas "${targets[@]}")
objects=$out/objects
mkdir -p "$objects"

compile() { # source
  local object=$objects/$(basename "$1").o
  case $1 in
    *.c) gcc -std=c11 -O2 -fPIC -Iinclude -c "$1" -o "$object" ;;
    common/* | reference/*) g++ -std=c++20 -O2 -fPIC -Iinclude -I. -c "$1" -o "$object" ;;
    *) "$nvcc" -x cu "${flags[@]}" -c "$1" -o "$object" ;;
  esac
}
sources=(gpu/*.cu gpu/device.cc gpu/graph.cc gpu/layers.cc gpu/plugin.cc gpu/staging.cc gpu/weight.cc cuda/*.cu cuda/blas.cc
  cuda/cudnn.cc cuda/platform.cc cuda/rows.c reference/dequantize.cc common/error.cc common/shapes.cc)
rm -f "$objects"/*.o
pids=()
for source in "${sources[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
  compile "$source" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
"$nvcc" -shared -cudart static "${targets[@]}" "$objects"/*.o -o "$out/libashlar_cuda.so" \
  -Xlinker=--version-script=exports.map -lpthread -ldl -lrt
rm -r "$objects"
echo "build.sh: $out/libashlar_cuda.so for sm_$(IFS=,; echo "${capabilities[*]}")"
