#!/usr/bin/env bash
# The file tree of a container image, from a release build:  assemble.sh cpu|cuda|rocm|hooks TREE BUILD [GPU]
# TREE gets the program, its plugins, every shared library that they need, an unprivileged user, mount points and the licences of
# all that is in it; no shell, no package manager, no CA certificates (neither program opens a TLS connection).
# GPU is the folder of libashlar_cuda.so or libashlar_hip.so (make build-gpu). CUBLASLT names libcublasLt.so.13; without it the one
# of NVIDIA's wheels (package nvidia-cublas) beside those of kernels/cuda/build.sh is taken. The driver's libraries come from the node.
set -euo pipefail
kind=$1 tree=$2 build=$3 gpu=${4:-}
root=$(realpath "$(dirname "$0")/../..")
libraries=$tree/usr/lib/$(uname -m)-linux-gnu
licences=$tree/usr/share/licenses

# Copies the shared libraries that FILE needs, and the loader.
libraries_of_debian=()
closure() { # file
  local name path loader
  while read -r name path; do
    if [ "$path" = not ]; then  # "not found"
      echo "assemble.sh: $1 needs $name, which is not here" >&2
      exit 1
    fi
    [ ! -e "$libraries/$name" ] || continue
    cp -L "$path" "$libraries/$name"
    libraries_of_debian+=("$(realpath "$path")")
  done < <(ldd "$1" | awk '$2 == "=>" {print $1, $3}')
  loader=$(ldd "$1" | awk '$1 ~ /^\/.*ld-linux/ {print $1}')
  install -D "$(realpath "$loader")" "$tree$loader"
}

package_licences() { # Debian packages
  local package
  for package in "$@"; do
    mkdir -p "$licences/$package"
    cp "/usr/share/doc/$package/copyright" "$licences/$package/"
  done
}

# Fails for a library that no package owns. The pattern begins with the library's folder: without it the 32-bit package matches
# too, and what is before it dpkg may know as a link.
library_licences() {
  local path patterns=() packages
  for path in "${libraries_of_debian[@]}"; do patterns+=("*/$(basename "$(dirname "$path")")/$(basename "$path")"); done
  packages=$(dpkg-query -S "${patterns[@]}")
  package_licences $(cut -d: -f1 <<<"$packages" | sort -u)
}

program() { # name
  install -D -s "$build/bin/$1" "$tree/usr/bin/$1"
  closure "$build/bin/$1"
}

plugin() { # file
  install -D -s -m 644 "$1" "$tree/usr/lib/ashlar/$(basename "$1")"
  closure "$1"
}

# The crates in the text library.
crate_licences() {
  cargo metadata --format-version 1 --filter-platform "$(uname -m)-unknown-linux-gnu" --manifest-path "$root/runtime/text/rust/Cargo.toml" |
    python3 "$root/manifests/images/crate_licences.py" "$licences/rust"
}

cublas() {
  local file=${CUBLASLT:-$(ls "$HOME"/.cache/ashlar/cuda13/lib/python3*/site-packages/nvidia/cu13/lib/libcublasLt.so.13 2>/dev/null || true)}
  [ -e "$file" ] || { echo "assemble.sh: no libcublasLt.so.13: pip install nvidia-cublas==13.0.*, and name it in CUBLASLT" >&2; exit 1; }
  cp -L "$file" "$libraries/"
  mkdir -p "$licences/nvidia-cublas"
  find "$(dirname "$file")/../../.." -path '*nvidia_cublas-13*' -type f -iname '*license*' -exec cp {} "$licences/nvidia-cublas/" \;
  [ -n "$(ls "$licences/nvidia-cublas")" ] || echo "assemble.sh: warning: no licence beside $file" >&2
}

rm -rf "$tree"
mkdir -p "$libraries" "$licences" "$tree"/{etc/ashlar,models,proc,sys,dev}
mkdir -m 1777 "$tree/tmp"
printf 'root:x:0:0::/:/nologin\nashlar:x:10001:10001::/:/nologin\n' >"$tree/etc/passwd"
printf 'root:x:0:\nashlar:x:10001:\n' >"$tree/etc/group"
printf 'hosts: files dns\n' >"$tree/etc/nsswitch.conf"

case $kind in
  hooks) program ashlar-hooks ;;
  cpu | cuda | rocm)
    program ashlar
    plugin "$build/lib/ashlar/libashlar_reference.so"
    plugin "$build/lib/ashlar/libashlar_cpu.so"
    crate_licences
    ;;&
  cuda)
    plugin "$gpu/libashlar_cuda.so"
    cublas
    ;;
  rocm) plugin "$gpu/libashlar_hip.so" ;;
  cpu) ;;
  *)
    echo "assemble.sh: \"$kind\" is not cpu, cuda, rocm or hooks" >&2
    exit 64
    ;;
esac
package_licences nlohmann-json3-dev libcli11-dev  # compiled in
library_licences
chmod -R go=u-w "$tree"
chmod 1777 "$tree/tmp"
echo "assemble.sh: $kind, $(($(du -sb "$tree" | cut -f1) >> 20)) MiB in $tree"
