#!/usr/bin/env bash
# On a GPU host with nothing but nvcc 13, g++ and Python: builds the CUDA plugin, the reference
# plugin, the conformance driver and the benchmark from the tree, checks every op and row, runs the
# checks under compute-sanitizer, times, and prints each figure beside its goal. A part that fails
# or takes too long is said and left, and nothing begins that would end after 560 seconds; exits with
# the number of parts that did not end well.
#   tests/gpu/build_and_check.sh FOLDER [CAPABILITY [STEP...]]     results: FOLDER/*.txt, programs: FOLDER/bin
# Steps: build conformance bench sanitize profile; all when none is given. Without `build`, the programs are those that
# lie in FOLDER/bin, built there before or on another machine.
set -uo pipefail
out=$(realpath -m "$1")
capability=${2:-90a}
steps=("${@:3}")
[ ${#steps[@]} -gt 0 ] || steps=(build conformance bench sanitize profile)
cd "$(dirname "$0")/../.."
build=$out/bin
mkdir -p "$build"
failed=0
last=560  # seconds

step() { # name, seconds, command...
  local name=$1 limit=$2 begin=$SECONDS code=0
  shift 2
  [ "$limit" -le $((last - SECONDS)) ] || limit=$((last - SECONDS))
  if [ "$limit" -lt 5 ]; then
    echo "FAILED $name: no time is left"
    failed=$((failed + 1))
    return
  fi
  timeout -k 5 "$limit" "$@" >"$out/$name.txt" 2>&1 || code=$?
  if [ "$code" = 0 ]; then
    echo "ok     $name ($((SECONDS - begin)) s)"
  else
    echo "FAILED $name ($((SECONDS - begin)) s of $limit, exit $code): $(tail -n 3 "$out/$name.txt")"
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
  driver conformance tests/gpu/{conformance,attention_cases,layers_cases,layers_problem,matmul_cases,prefill_cases,project_cases,row_cases,sample_cases,step_cases}.cc & pids+=($!)
  benchmark & pids+=($!)
  kernels/cuda/build.sh "$build" "$capability" & pids+=($!)
  for pid in "${pids[@]}"; do wait "$pid" || return 1; done
  rm "$build"/*.o
}
conformance=("$build/conformance" "$build/libashlar_reference.so" "$build/libashlar_cuda.so")
[ "$capability" = 90a ] || conformance+=(--layers none)
bench=("$build/bench" "$build/libashlar_cuda.so")

nvidia-smi >"$out/device.txt" 2>&1
for name in "${steps[@]}"; do
  case $name in
    build)
      begin=$SECONDS
      build >"$out/build.txt" 2>&1 || { cat "$out/build.txt"; echo "FAILED build"; exit 1; }
      echo "ok     build ($((SECONDS - begin)) s)" ;;
    conformance) step conformance 120 "${conformance[@]}" --rounds 20 --size large ;;
    sanitize)
      pids=()
      for tool in memcheck racecheck initcheck synccheck; do
        (failed=0; step "$tool" 120 compute-sanitizer --tool "$tool" --error-exitcode 9 "${conformance[@]}" --rounds 1; exit "$failed") &
        pids+=($!)
      done
      for pid in "${pids[@]}"; do wait "$pid" || failed=$((failed + 1)); done ;;
    bench)
      for part in decode prepare sample matmul step; do step "bench-$part" 90 "${bench[@]}" --only "$part"; done
      for row in CUDA_HOPPER CUDA_PAGED; do step "bench-prefill-$row" 40 "${bench[@]}" --only prefill --row "$row"; done
      python3 tests/gpu/compare.py "$out" ;;
    profile) # what warps wait for in the kernels of a small step, the first of each
      for kernel in SkinnyKernel EightsKernel DecodeKernel; do
        # The benchmark is ended once it is profiled, so its exit says nothing.
        step "profile-$kernel" 40 bash -c '"$@"; true' profile ncu --clock-control none --kill yes --launch-skip 1 \
          --launch-count 1 --kernel-name "regex:$kernel" --section LaunchStats --section Occupancy \
          --section SpeedOfLight --section WarpStateStats --print-details all "${bench[@]}" --only step
        grep -E "Duration|Registers Per|Stall (No Inst|Long|Barrier|Short|Wait|Membar|Branch)" "$out/profile-$kernel.txt" 2>/dev/null
      done ;;
    *) echo "no step $name" >&2; failed=$((failed + 1)) ;;
  esac
done
exit "$failed"
