#!/usr/bin/env bash
# On a GPU host with nothing but nvcc 13 and g++: builds the CUDA plugin, the reference plugin, the
# conformance driver and the benchmark from the tree, checks every op and row, runs the checks under
# compute-sanitizer, then times. Exits with the number of checks that failed.
#   tests/gpu/build_and_check.sh FOLDER [CAPABILITY [STEP...]]     results: FOLDER/*.txt
# Steps: conformance sanitize bench; all when none is given.
set -uo pipefail
out=$(realpath -m "$1")
capability=${2:-90a}
steps=("${@:3}")
[ ${#steps[@]} -gt 0 ] || steps=(conformance sanitize bench)
cd "$(dirname "$0")/../.."
mkdir -p "$out"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
failed=0

step() { # name, command...
  local name=$1 begin=$SECONDS
  shift
  if "$@" >"$out/$name.txt" 2>&1; then
    echo "ok     $name ($((SECONDS - begin)) s)"
  else
    echo "FAILED $name ($((SECONDS - begin)) s): $(tail -n 3 "$out/$name.txt")"
    failed=$((failed + 1))
  fi
}

reference() {
  local include=(-Ikernels/include -Ikernels)
  gcc -std=c11 -O2 -fPIC -c kernels/reference/rows.c "${include[@]}" -o "$build/rows.o" &&
    g++ -std=c++20 -O2 -fPIC -shared -ffp-contract=off "${include[@]}" kernels/reference/*.cc kernels/common/*.cc \
      "$build/rows.o" -o "$build/libashlar_reference.so" -lpthread
}
driver() { # name, sources...
  local name=$1
  shift
  g++ -std=c++20 -O2 -DASHLAR_GPU_HOST -Itests -Ikernels -Ikernels/include "$@" -o "$build/$name" -ldl
}
benchmark() { # its own kernels need the vendor's compiler
  local nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)} name
  "$nvcc" -std=c++20 -O3 -gencode="arch=compute_$capability,code=sm_$capability" -DASHLAR_GPU_CUDA -Itests -Ikernels \
    -Ikernels/include -c tests/gpu/ceilings.cu -o "$build/ceilings.o" || return 1
  for name in bench bench_prepare bench_sample; do
    g++ -std=c++20 -O2 -DASHLAR_GPU_HOST -Itests -Ikernels -Ikernels/include -c "tests/gpu/$name.cc" -o "$build/$name.o" ||
      return 1
  done
  "$nvcc" -cudart static "$build"/{bench,bench_prepare,bench_sample,ceilings}.o -o "$build/bench" -ldl
}
build() {
  local pids=() pid
  reference & pids+=($!)
  driver conformance tests/gpu/{conformance,attention_cases,matmul_cases,prefill_cases,project_cases,row_cases,sample_cases}.cc & pids+=($!)
  benchmark & pids+=($!)
  kernels/cuda/build.sh "$build" "$capability" & pids+=($!)
  for pid in "${pids[@]}"; do wait "$pid" || return 1; done
}
conformance() { "$build/conformance" "$build/libashlar_reference.so" "$build/libashlar_cuda.so" "$@"; }
sanitize() { # tool
  compute-sanitizer --tool "$1" --error-exitcode 9 "$build/conformance" "$build/libashlar_reference.so" \
    "$build/libashlar_cuda.so" --rounds 2
}

nvidia-smi >"$out/device.txt" 2>&1
step build build
[ "$failed" = 0 ] || { cat "$out/build.txt"; exit 1; }
for name in "${steps[@]}"; do
  case $name in
    conformance) step conformance conformance --rounds 60 ;;
    sanitize) for tool in memcheck racecheck initcheck synccheck; do step "$tool" sanitize "$tool"; done ;;
    bench) step bench "$build/bench" "$build/libashlar_cuda.so" ;;
  esac
  cat "$out/$name.txt" 2>/dev/null
done
exit "$failed"
