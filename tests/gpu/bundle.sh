#!/usr/bin/env bash
# The release binary for a GPU host that has no Debian packages: FOLDER/bin/ashlar, its libraries in
# FOLDER/lib (found by $ORIGIN/../lib), the host plugins in FOLDER/lib/ashlar; stripped, at most
# 40 MiB. C and C++ run-time libraries are the host's own: GLIBC 2.36 and GCC 12's or newer.
#   tests/gpu/bundle.sh RELEASE_BUILD FOLDER
set -euo pipefail
build=$1
out=$2
command -v patchelf >/dev/null || apt-get install -y -q --no-install-recommends patchelf >/dev/null
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib/ashlar"
cp "$build/bin/ashlar" "$out/bin/"
[ ! -e "$build/bin/bench_engine" ] || cp "$build/bin/bench_engine" "$out/bin/"
cp "$build"/lib/ashlar/libashlar_{reference,cpu}.so "$out/lib/ashlar/"
ldd "$out/bin/ashlar" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | while read -r name path; do
  case $name in libc.so* | libm.so* | libstdc++.so* | libgcc_s.so*) continue ;; esac
  cp -L "$path" "$out/lib/$name"
done
find "$out" -type f -exec strip --strip-unneeded {} +
patchelf --set-rpath '$ORIGIN/../lib' "$out"/bin/*
find "$out/lib" -maxdepth 1 -name '*.so*' -exec patchelf --set-rpath '$ORIGIN' {} +

"$out/bin/ashlar" version
foreign=$(ldd "$out/bin/ashlar" | awk '$2 == "=>" {print $3}' | grep -v "^$(realpath "$out")/\|/lib\(c\|m\|stdc++\|gcc_s\)\.so" || true)
[ -z "$foreign" ] || { echo "bundle.sh: not in the bundle: $foreign" >&2; exit 1; }
bytes=$(du -sb "$out" | cut -f1)
[ "$bytes" -le $((40 << 20)) ] || { echo "bundle.sh: $bytes bytes, more than 40 MiB" >&2; exit 1; }
echo "bundle.sh: $out, $((bytes >> 20)) MiB"
