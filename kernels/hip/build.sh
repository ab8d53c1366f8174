#!/usr/bin/env bash
# Builds libashlar_hip.so into FOLDER for the architectures given (gfx90a gfx942 gfx1030 gfx1100 when
# none is) with clang 19 and Debian 12's HIP 5.2 headers and device libraries, which root installs
# here when they are missing. clang 19 knows no gfx950.
#   kernels/hip/build.sh FOLDER [ARCHITECTURE...]
# ROCM_PATH names another ROCm, whose own clang is then used.
set -euo pipefail
out=$(realpath -m "$1")
shift
architectures=("$@")
[ ${#architectures[@]} -gt 0 ] || architectures=(gfx90a gfx942 gfx1030 gfx1100)
cd "$(dirname "$0")/.."
objects=$out/objects
mkdir -p "$objects/bitcode"

if [ -n "${ROCM_PATH:-}" ]; then
  clang=$ROCM_PATH/llvm/bin/clang++
  tool=(--rocm-path="$ROCM_PATH")
else
  clang=clang++-19
  if ! command -v $clang >/dev/null || ! command -v ld.lld-19 >/dev/null || [ ! -e /usr/include/hip ]; then
    apt-get install -y -q --no-install-recommends clang-19 clang-tools-19 lld-19 libamdhip64-dev rocm-device-libs >/dev/null
  fi
  bitcode=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode
  # Debian's libraries know gfx940, whose instruction set gfx942 has, and gfx1036, which gfx1100 has
  # everything of that they ask for; they lack the names only.
  ln -sf "$bitcode"/*.bc "$objects/bitcode/"
  ln -sf "$bitcode/oclc_isa_version_940.bc" "$objects/bitcode/oclc_isa_version_942.bc"
  ln -sf "$bitcode/oclc_isa_version_1036.bc" "$objects/bitcode/oclc_isa_version_1100.bc"
  tool=(--rocm-path=/usr --rocm-device-lib-path="$objects/bitcode")
fi
targets=()
for architecture in "${architectures[@]}"; do targets+=("--offload-arch=$architecture"); done
flags=(-std=c++20 -O3 -fPIC -Iinclude -I. -DASHLAR_GPU_HIP -D__HIP_PLATFORM_AMD__ -Wall -Wextra -Werror
  -Wno-pass-failed "${tool[@]}" "${targets[@]}")

compile() { # source
  local object=$objects/$(basename "$1").o
  case $1 in
    *.c) gcc -std=c11 -O2 -fPIC -Iinclude -c "$1" -o "$object" ;;
    common/* | reference/*) g++ -std=c++20 -O2 -fPIC -Iinclude -I. -c "$1" -o "$object" ;;
    *) "$clang" -x hip "${flags[@]}" -c "$1" -o "$object" ;;
  esac
}
sources=(gpu/*.cu gpu/device.cc gpu/graph.cc gpu/layers.cc gpu/no_blas.cc gpu/plugin.cc gpu/staging.cc gpu/weight.cc
  hip/platform.cc hip/rows.c reference/dequantize.cc common/error.cc common/shapes.cc)
rm -f "$objects"/*.o
pids=()
for source in "${sources[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
  compile "$source" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
"$clang" -shared --hip-link "${tool[@]}" "${targets[@]}" "$objects"/*.o -o "$out/libashlar_hip.so" \
  -Wl,--version-script=exports.map -lamdhip64
rm -r "$objects"
echo "build.sh: $out/libashlar_hip.so for ${architectures[*]}"
