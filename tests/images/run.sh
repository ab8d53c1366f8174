#!/usr/bin/env bash
# Assembles each image's file tree and runs it as a pod would:  run.sh BUILD [GPU]
# BUILD holds bin/ashlar, bin/ashlar-hooks and the plugins; GPU, where it is built, libashlar_cuda.so and libashlar_hip.so.
set -euo pipefail
build=$(realpath "$1") gpu=$(realpath -m "${2:-$1/../gpu}")
here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath "$here/../..")
if [ "$(id -u)" != 0 ] || ! unshare --mount --pid --fork true 2>/dev/null; then
  echo "SKIPPED: images: root with the right to mount is not at hand" >&2
  exit 0
fi
folder=$(mktemp -d)
server=  # the shell around unshare, around the program
program() { pgrep -P "$(pgrep -P "$server")"; }
finish() {
  [ -z "$server" ] || kill -9 "$(program)" 2>/dev/null || true
  rm -rf --one-file-system "$folder"
}
trap finish EXIT
# A user of the image must reach it, and its own files only.
chmod 755 "$folder"
mkdir "$folder/config"
cp "$root/manifests/samples/demo.yaml" "$folder/config/model.yaml"
cp "$root/manifests/samples/im-cpu-demo.yaml" "$folder/config/im.yaml"
chmod -R a+rX "$folder/config"

fail() {
  echo "images: $*" >&2
  exit 1
}
inside() { # kind command...
  local tree=$folder/$1
  shift
  unshare --mount --pid --fork --kill-child "$here/enter.sh" "$tree" "$folder/config" "$@"
}

# The tree holds what it should and nothing that helps an intruder, and is at most MIB large.
assemble() { # kind MIB
  local kind=$1 most=$2 bytes file loader
  "$root/manifests/images/assemble.sh" "$kind" "$folder/$kind" "$build" "$gpu"
  bytes=$(du -sb "$folder/$kind" | cut -f1)
  echo "images: $kind: $((bytes >> 20)) MiB, at most $most"
  [ "$bytes" -le $((most << 20)) ] || fail "$kind is larger than $most MiB"
  [ -z "$(find "$folder/$kind" -perm /6000 -o -type f -perm /022 -o -not -user root)" ] || fail "$kind: setuid, writable or foreign files"
  [ -z "$(find "$folder/$kind" -name 'sh' -o -name 'bash' -o -name 'busybox' -o -name 'dpkg')" ] || fail "$kind: a shell or a package manager"
  # Every library of a plugin is found inside; a program that lacks one does not run.
  loader=$(cd "$folder/$kind" && ls lib*/ld-linux-*)
  while read -r file; do
    inside "$kind" "/$loader" --list "/usr/lib/ashlar/$file" >"$folder/list" || fail "$kind: $file does not load"
    ! grep 'not found' "$folder/list" || fail "$kind: $file lacks a library"
  done < <(ls "$folder/$kind/usr/lib/ashlar" 2>/dev/null)
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Serves until URL answers.
start() { # kind url arguments...
  local kind=$1 url=$2
  shift 2
  inside "$kind" "$@" >"$folder/log" 2>&1 &
  server=$!
  for _ in $(seq 600); do
    if curl -sf -o "$folder/answer" "$url"; then return; fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.2
  done
  cat "$folder/log" >&2
  fail "$kind: no answer from $url"
}

# As the kubelet does: SIGTERM to process 1, which must end by itself with status 0.
stop() { # kind
  kill -TERM "$(program)"
  wait "$server" || fail "$1: status $? after SIGTERM: $(cat "$folder/log")"
  server=
}

for kind in cpu cuda rocm hooks; do
  file=$root/manifests/images/$kind.Containerfile
  [ "$(grep '^FROM' "$file")" = $'FROM debian:bookworm AS build\nFROM scratch' ] || fail "$file: other base images"
  grep -q '^USER 10001:10001$' "$file" && grep -q "assemble.sh $kind /tree build/release" "$file" || fail "$file: not this tree or user"
  grep -q "$(sed -n 's/.* -t \(.*\) \.$/\1/p' "$file")" "$root/charts/ashlar/values.yaml" || fail "$file: the chart asks for another image"
done

assemble cpu 48
inside cpu /usr/bin/ashlar version
inside cpu /usr/bin/ashlar plan -f /etc/ashlar/model.yaml | grep -q CPU_PAGED || fail "cpu: the plan names no CPU_PAGED"
port=$(free_port)
start cpu "http://127.0.0.1:$port/readyz" /usr/bin/ashlar serve -f /etc/ashlar/model.yaml --port "$port"
uid=$(awk '/^Uid:/ {print $2}' "/proc/$(program)/status")
[ "$uid" = 10001 ] || fail "cpu: the program runs as user $uid"
curl -sf "http://127.0.0.1:$port/v1/completions" -H 'Content-Type: application/json' \
  -d '{"model": "demo", "prompt": "Hello", "max_tokens": 4}' | grep -q '"completion_tokens":' || fail "cpu: no completion"
stop cpu

if [ -x "$build/bin/ashlar-hooks" ]; then
  assemble hooks 24
  inside hooks /usr/bin/ashlar-hooks render -f /etc/ashlar/im.yaml | grep -q 'kind: Deployment' || fail "hooks: render made no Deployment"
  port=$(free_port)
  start hooks "http://127.0.0.1:$port/healthz" /usr/bin/ashlar-hooks serve --port "$port"
  stop hooks
else
  echo "SKIPPED: images: hooks: no $build/bin/ashlar-hooks" >&2
fi

for row in cuda:768:CUDA_PAGED:h100 rocm:96:HIP_PAGED:mi300x; do
  IFS=: read -r kind most backend platform <<<"$row"
  plugin=$gpu/libashlar_${kind/rocm/hip}.so
  if [ ! -e "$plugin" ]; then
    echo "SKIPPED: images: $kind: no $plugin; make build-gpu makes it" >&2
    continue
  fi
  assemble "$kind" "$most"
  inside "$kind" /usr/bin/ashlar version
  inside "$kind" /usr/bin/ashlar plan -f /etc/ashlar/model.yaml --platform "$platform" | grep -q "$backend" || fail "$kind: the plan names no $backend"
done
echo "images: all passed"
