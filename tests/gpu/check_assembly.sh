#!/usr/bin/env bash
# Compiles tests/gpu/instances.cu for each target that a compiler here knows and looks at the result:
# the wave's width and, where there are matrix instructions, their use and no registers spilled. Exits 77, which ctest shows as
# skipped, when there is neither clang 19 with HIP's headers nor nvcc. What was compiled before comes from ccache.
set -euo pipefail
cd "$(dirname "$0")/../../kernels"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0
ccache=$(command -v ccache || true)

fail() { echo "check_assembly: $*" >&2; exit 1; }

amd() { # architecture, wave, matrix instruction or none
  local out=$work/$1.s optimize=-O3
  [ "$3" != none ] || optimize=-O1 # registers are not looked at
  $ccache clang++-19 -x hip --cuda-device-only -S --offload-arch="$1" -std=c++20 "$optimize" -DASHLAR_GPU_HIP \
    -D__HIP_PLATFORM_AMD__ -DASHLAR_WAVE="$2" -Iinclude -I. --rocm-path=/usr --rocm-device-lib-path="$libraries" \
    ../tests/gpu/instances.cu -o "$out"
  [ "$(grep -c "\.wavefront_size: $2" "$out")" = 6 ] || fail "$1: not six kernels of wave $2"
  local spills
  spills=$(grep -oE "\.vgpr_spill_count: +[0-9]+" "$out" | tr -s ' \n' ' ')
  if [ "$3" != none ]; then
    grep -q "$3" "$out" || fail "$1: no $3"
    grep -qE "spill_count: [1-9]" <<<"$spills" && fail "$1: registers are spilled"
  fi
  echo "$1: wave $2, $(grep -c "$3" "$out" || true) of $3, $(grep -oE "\.vgpr_count: +[0-9]+" "$out" | tr -s ' \n' ' ')$spills"
  checked=$((checked + 1))
}

# The object holds the PTX as text.
compile() { # nvcc, capability, source, what to call it
  $ccache "$1" -x cu -std=c++20 -O3 -gencode="arch=compute_$2,code=[sm_$2,compute_$2]" -no-compress -Iinclude -I. \
    -DASHLAR_GPU_CUDA -DASHLAR_WAVE=32 -Xptxas -v -c "$3" -o "$work/$4.o" >"$work/$4.txt" 2>&1 ||
    fail "$4: $(cat "$work/$4.txt")"
}

nvidia() { # nvcc, capability
  local name=sm_$2 out=$work/sm_$2.txt
  compile "$1" "$2" ../tests/gpu/instances.cu "$name"
  # What is put aside once, outside the loops, is no loss; an array in local memory is more.
  local spilled
  spilled=$(grep -oE "[0-9]+ bytes spill stores" "$out" | sort -n | tail -1 | cut -d' ' -f1)
  [ "$spilled" -le 256 ] || fail "$name: $spilled bytes of registers are spilled"
  for instruction in mma.sync ldmatrix cp.async; do
    grep -qa "$instruction" "$work/$name.o" || fail "$name: no $instruction"
  done
  echo "$name: $spilled bytes spilled, $(grep -oE "Used [0-9]+ registers" "$out" | tr '\n' ' ')"
  checked=$((checked + 1))
}

hopper() { # nvcc, source of cuda/
  local out=$work/$2.txt
  compile "$1" 90a "cuda/$2.cu" "$2"
  grep -qE "[1-9][0-9]* bytes spill|serialized|setmaxnreg" "$out" && fail "$2: $(cat "$out")"
  grep -qa wgmma.mma_async "$work/$2.o" || fail "$2: no wgmma"
  echo "$2: no spills, products run beside threads"
}

layers() { # nvcc
  local name=layers_instance out=$work/layers_instance.txt spilled instruction
  compile "$1" 90a ../tests/gpu/layers_instance.cu "$name"
  # Registers are full: a few that are put aside once a phase are no loss.
  spilled=$(grep -oE "[0-9]+ bytes spill stores" "$out" | sort -n | tail -1 | cut -d' ' -f1)
  [ "$spilled" -le 64 ] || fail "$name: $spilled bytes of registers are spilled"
  for instruction in mma.sync cp.async st.async st.relaxed.gpu; do
    grep -qa "$instruction" "$work/$name.o" || fail "$name: no $instruction"
  done
  echo "$name: $spilled bytes spilled, $(grep -oE "Used [0-9]+ registers" "$out" | tr '\n' ' ')"
}

bitcode=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode
libraries=$HOME/.cache/ashlar/bitcode # one name at every run
if command -v clang++-19 >/dev/null && [ -e /usr/include/hip/hip_runtime.h ] && [ -e "$bitcode/ocml.bc" ]; then
  mkdir -p "$libraries"
  ln -sf "$bitcode"/*.bc "$libraries/"
  ln -sf "$bitcode/oclc_isa_version_940.bc" "$libraries/oclc_isa_version_942.bc"
  ln -sf "$bitcode/oclc_isa_version_1036.bc" "$libraries/oclc_isa_version_1100.bc"
  CCACHE_EXTRAFILES=$(printf '%s:' "$libraries"/*.bc)
  export CCACHE_EXTRAFILES=${CCACHE_EXTRAFILES%:} # they are linked in
  amd gfx90a 64 v_mfma_f32_16x16x16
  amd gfx942 64 v_mfma_f32_16x16x16
  amd gfx1030 32 none
  amd gfx1100 32 none
  unset CCACHE_EXTRAFILES
else
  echo "check_assembly: no clang 19 with HIP's headers: HIP is not compiled here"
fi
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc "$HOME"/.cache/ashlar/cuda13/lib/python3*/site-packages/nvidia/cu13/bin/nvcc 2>/dev/null | head -1 || true)
if [ -n "$nvcc" ]; then
  for capability in ${CAPABILITIES:-80 90a 100a 120}; do nvidia "$nvcc" "$capability"; done
  hopper "$nvcc" hopper_bf16
  hopper "$nvcc" hopper_matmul_bf16
  layers "$nvcc"
else
  echo "check_assembly: no nvcc: CUDA is not compiled here"
fi
[ "$checked" -gt 0 ] || exit 77
