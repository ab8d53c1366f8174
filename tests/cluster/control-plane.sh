#!/usr/bin/env bash
# A real Kubernetes control plane for tests, from Go modules, without containers or root.
#   control-plane.sh go              say whether there is a Go that can build it
#   control-plane.sh build [NAME...] build what is missing into $KC_CACHE/bin
#   control-plane.sh start DIR       start on free loopback ports; DIR must not exist or be empty
#   control-plane.sh stop  DIR       stop by the pids in DIR/pids, newest first (keeps DIR's logs)
#   control-plane.sh status DIR      pid, resident memory and address of each process
# start writes DIR/kubeconfig (cluster admin), DIR/env (KUBECONFIG, PATH, APISERVER, KC_*) and DIR/audit.log (what pods ask).
# Settings: KC_CACHE (cache folder), KC_WITH (processes beside etcd and apiserver),
#           KC_STAGES (folders below KWOK's kustomize/stage, node and pod behaviour).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
KC_CACHE=${KC_CACHE:-$HOME/.cache/ashlar/control-plane}
KC_WITH=${KC_WITH-"kube-controller-manager kube-scheduler kwok"}
KC_STAGES=${KC_STAGES-"node/fast node/heartbeat-with-lease pod/fast"}
KC_JOBS=${KC_JOBS:-2}
K8S=1.36.3
PATIENCE=180 # seconds for a process to become ready

say() { echo "control-plane: $*" >&2; }
die() { say "$*"; exit 1; }

# ---- build -------------------------------------------------------------------------------------
build_one() { # folder package name ldflags source-file...
  local out=$KC_CACHE/bin/$3 key
  key=$(cat "$here/$1/go.mod" "$here/$1/go.sum" "${@:5}" <(echo "$4"; go env GOVERSION) | sha256sum | cut -c1-16)
  [ -x "$out" ] && [ "$(cat "$out.key" 2>/dev/null)" = "$key" ] && return 0
  say "building $3"
  (cd "$here/$1" && CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -p "$KC_JOBS" -trimpath \
     -ldflags="-s -w $4" -o "$out.tmp" "$2")
  mv "$out.tmp" "$out" && echo "$key" > "$out.key"
}

version_of() { awk -v m="$1" '$1 == m && $2 ~ /^v/ {print $2; exit}' "$here/${2:-}go.mod"; } # module [folder/]

build() { # name...: all without one
  mkdir -p "$KC_CACHE/bin"
  local ld="" p
  for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    ld+=" -X $p.gitVersion=v$K8S -X $p.gitMajor=${K8S%%.*} -X $p.gitMinor=$(cut -d. -f2 <<<"$K8S")"
    ld+=" -X $p.gitTreeState=clean -X $p.gitCommit=$(printf '0%.0s' {1..40}) -X $p.buildDate=1970-01-01T00:00:00Z"
  done
  [ $# -gt 0 ] || set -- kube-apiserver kube-controller-manager kube-scheduler kubectl kwok helm etcd driver kubelet network
  for p in "$@"; do case $p in
    kube-* | kubectl) build_one . "k8s.io/kubernetes/cmd/$p" "$p" "$ld" ;;
    helm) build_one . helm.sh/helm/v4/cmd/helm helm "$ld -X helm.sh/helm/v4/internal/version.version=$(version_of helm.sh/helm/v4)" ;;
    helm3) build_helm3 ;;
    etcd) build_one etcd go.etcd.io/etcd/server/v3 etcd "" ;;
    kwok) build_one . sigs.k8s.io/kwok/cmd/kwok kwok "$ld" && copy_stages ;;
    *) build_one . "./$p" "ashlar-test-$p" "" "$here/$p"/*.go ;; # our own
  esac; done
}

# Helm 3 is told by its Makefile which Kubernetes it templates for.
build_helm3() {
  local v3=helm.sh/helm/v3 major=${K8S%%.*} minor
  minor=$(cut -d. -f2 <<<"$K8S")
  build_one helm3 $v3/cmd/helm helm3 "$ld -X $v3/internal/version.version=$(version_of $v3 helm3/) \
    -X $v3/pkg/lint/rules.k8sVersionMajor=$major -X $v3/pkg/lint/rules.k8sVersionMinor=$minor \
    -X $v3/pkg/chartutil.k8sVersionMajor=$major -X $v3/pkg/chartutil.k8sVersionMinor=$minor"
}

# KWOK has no behaviour built in: its Stages are files of its module.
copy_stages() {
  cmp -s "$KC_CACHE/kwok/key" "$KC_CACHE/bin/kwok.key" && return
  local dir
  dir=$(cd "$here" && go mod download sigs.k8s.io/kwok && go list -mod=readonly -m -f '{{.Dir}}' sigs.k8s.io/kwok)
  rm -rf "$KC_CACHE/kwok" && mkdir -p "$KC_CACHE/kwok"
  cp -r "$dir/kustomize/stage" "$KC_CACHE/kwok/" && chmod -R u+w "$KC_CACHE/kwok"
  cp "$KC_CACHE/bin/kwok.key" "$KC_CACHE/kwok/key"
}

# Go 1.21 and later fetch the version that go.mod names.
go_is_new() {
  command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin
  go version 2>/dev/null | sed -E 's/.*go([0-9]+)\.([0-9]+).*/\1 \2/' | awk '{new = ($1 > 1 || $2 >= 21)} END {exit !new}'
}

# ---- start -------------------------------------------------------------------------------------
free_ports() { # n: n different free loopback ports
  python3 - "$1" <<'P'
import socket, sys
s = [socket.socket() for _ in range(int(sys.argv[1]))]
for x in s: x.bind(("127.0.0.1", 0))
print(*[x.getsockname()[1] for x in s])
P
}

cert() { # name subject extensions
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$pki/$1.key" \
    -subj "$2" -out "$pki/$1.csr" 2>/dev/null
  openssl x509 -req -in "$pki/$1.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 2 \
    -extfile <(printf '%b' "$3") -out "$pki/$1.crt" 2>/dev/null
}

kubeconfig() { # file certificate-name
  local b="base64 -w0"
  cat > "$1" <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:$P_API", certificate-authority-data: $($b "$pki/ca.crt")}}]
users: [{name: u, user: {client-certificate-data: $($b "$pki/$2.crt"), client-key-data: $($b "$pki/$2.key")}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
Y
  chmod 600 "$1"
}

declare -A command_of pid_of
run() { # name command...   starts it in its own process group, remembers the pid
  local n=$1; shift
  command_of[$n]=$(printf '%q ' "$@")
  setsid "$@" >> "$dir/log/$n.log" 2>&1 < /dev/null &
  pid_of[$n]=$!
  echo "$! $n" >> "$dir/pids"
}

# On a busy machine a process may give up because another is not there yet: it is started again, as a kubelet would.
wait_url() { # name curl-args...
  local n=$1 end=$((SECONDS + PATIENCE)) deaths=0; shift
  while [ $SECONDS -lt $end ]; do
    curl -fsS --noproxy '*' -m 5 -o /dev/null "$@" 2>/dev/null && return 0
    if ! alive "${pid_of[$n]}"; then
      deaths=$((deaths + 1))
      [ $deaths -lt 5 ] || { tail -5 "$dir/log/$n.log" >&2; die "$n died, see $dir/log/$n.log"; }
      eval "run $n ${command_of[$n]}"
    fi
    sleep 0.1
  done
  tail -5 "$dir/log/$n.log" >&2; die "$n not ready in time"
}

start() {
  dir=$1; [ -e "$dir/pids" ] && die "$dir is in use"
  mkdir -p "$dir"/{pki,log,etcd}; chmod 700 "$dir" "$dir"/etcd; dir=$(cd "$dir" && pwd); pki=$dir/pki
  local b=$KC_CACHE/bin v="-v=1"
  read -r P_ETCD P_PEER P_API P_CM P_SCHED P_KWOK <<<"$(free_ports 6)"
  trap 'stop "$dir"' EXIT # a failed start leaves nothing running
  # certificates and the key pair for service-account tokens
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$pki/ca.key" \
    -subj /CN=test-ca -days 2 -addext keyUsage=critical,keyCertSign,cRLSign -out "$pki/ca.crt" 2>/dev/null
  cert apiserver /CN=kube-apiserver "subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc\nextendedKeyUsage=serverAuth\n"
  cert admin /O=system:masters/CN=admin "extendedKeyUsage=clientAuth\n"
  cert kube-controller-manager /CN=system:kube-controller-manager "extendedKeyUsage=clientAuth\n"
  cert kube-scheduler /CN=system:kube-scheduler "extendedKeyUsage=clientAuth\n"
  openssl genrsa -out "$pki/sa.key" 2048 2>/dev/null
  openssl rsa -in "$pki/sa.key" -pubout -out "$pki/sa.pub" 2>/dev/null
  kubeconfig "$dir/kubeconfig" admin
  cat > "$dir/audit.yaml" <<Y
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, userGroups: ["system:serviceaccounts:kube-system"]}
- {level: Metadata, userGroups: ["system:serviceaccounts"]}
Y

  run etcd "$b/etcd" --name=t --data-dir="$dir/etcd" --unsafe-no-fsync \
    --listen-client-urls="http://127.0.0.1:$P_ETCD" --advertise-client-urls="http://127.0.0.1:$P_ETCD" \
    --listen-peer-urls="http://127.0.0.1:$P_PEER" --initial-advertise-peer-urls="http://127.0.0.1:$P_PEER" \
    --initial-cluster="t=http://127.0.0.1:$P_PEER" --log-level=warn
  wait_url etcd "http://127.0.0.1:$P_ETCD/readyz"

  run kube-apiserver "$b/kube-apiserver" $v \
    --etcd-servers="http://127.0.0.1:$P_ETCD" \
    --bind-address=127.0.0.1 --secure-port="$P_API" --advertise-address=127.0.0.1 \
    --endpoint-reconciler-type=none --service-cluster-ip-range=10.0.0.0/16 \
    --cert-dir="$dir/apiserver" --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --client-ca-file="$pki/ca.crt" \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-signing-key-file="$pki/sa.key" --service-account-key-file="$pki/sa.pub" \
    --authorization-mode=Node,RBAC --allow-privileged=true --profiling=false \
    --audit-policy-file="$dir/audit.yaml" --audit-log-path="$dir/audit.log"
  wait_url kube-apiserver --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" \
    "https://127.0.0.1:$P_API/readyz"

  local w
  for w in $KC_WITH; do case $w in
    kube-controller-manager)
      kubeconfig "$dir/$w.kubeconfig" $w
      run $w "$b/$w" $v --kubeconfig="$dir/$w.kubeconfig" --authentication-kubeconfig="$dir/$w.kubeconfig" \
        --authorization-kubeconfig="$dir/$w.kubeconfig" --bind-address=127.0.0.1 --secure-port="$P_CM" \
        --cert-dir="$dir/cm" --leader-elect=false --use-service-account-credentials=true \
        --root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/sa.key" --profiling=false
      ;;
    kube-scheduler)
      kubeconfig "$dir/$w.kubeconfig" $w
      run $w "$b/$w" $v --kubeconfig="$dir/$w.kubeconfig" --authentication-kubeconfig="$dir/$w.kubeconfig" \
        --authorization-kubeconfig="$dir/$w.kubeconfig" --bind-address=127.0.0.1 --secure-port="$P_SCHED" \
        --cert-dir="$dir/sched" --leader-elect=false --profiling=false
      ;;
    kwok)
      local s f # a folder of KWOK's or, with a slash in front, one of ours
      for s in $KC_STAGES; do
        case $s in /*) ;; *) s=$KC_CACHE/kwok/stage/$s ;; esac
        for f in "$s"/*.yaml; do
          if grep -q '^kind: Stage' "$f"; then echo ---; cat "$f"; fi
        done
      done > "$dir/stages.yaml"
      run kwok "$b/kwok" --kubeconfig="$dir/kubeconfig" --config="$dir/stages.yaml" \
        --manage-all-nodes=false --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake \
        --node-ip=127.0.0.1 --cidr=10.128.0.1/16 --server-address="127.0.0.1:$P_KWOK" \
        --node-lease-duration-seconds=40
      ;;
    *) die "KC_WITH: unknown $w" ;;
  esac; done
  for w in $KC_WITH; do case $w in
    kube-controller-manager) wait_url $w -k "https://127.0.0.1:$P_CM/healthz" ;;
    kube-scheduler) wait_url $w -k "https://127.0.0.1:$P_SCHED/healthz" ;;
    kwok) wait_url $w "http://127.0.0.1:$P_KWOK/healthz" ;;
  esac; done
  cat > "$dir/env" <<Y
export KUBECONFIG=$dir/kubeconfig
export PATH=$b:\$PATH
export APISERVER=https://127.0.0.1:$P_API
export KC_PKI=$pki
Y
  trap - EXIT
  say "ready: . $dir/env"
}

# ---- stop --------------------------------------------------------------------------------------
alive() { # pid: running, and not a zombie that its new parent has yet to reap
  case $(awk '/^State/{print $2}' "/proc/$1/status" 2>/dev/null) in ''|Z|X) return 1 ;; esac
}

stop() {
  local d=$1 pid n i
  [ -e "$d/pids" ] || return 0
  while read -r pid n; do
    # only what is still the process that start began: its command line must name our binary
    { tr '\0' ' ' < "/proc/$pid/cmdline"; } 2>/dev/null | grep -q "/bin/$n " || continue
    kill -TERM "$pid" 2>/dev/null || continue
    for ((i = 0; i < 100; i++)); do alive "$pid" || break; sleep 0.05; done
    if alive "$pid"; then kill -KILL "$pid" 2>/dev/null || true; fi
  done < <(tac "$d/pids")
  rm -f "$d/pids"; rm -rf "$d/etcd"
}

status() {
  local pid n
  while read -r pid n; do
    printf '%-26s pid %-7s rss %s MiB\n' "$n" "$pid" \
      "$(awk '/VmRSS/{printf "%d",$2/1024}' "/proc/$pid/status" 2>/dev/null || echo dead)"
  done < "$1/pids"
}

go_is_new || die "needs Go 1.21 or newer, in PATH or /usr/local/go"
case ${1:-} in
  go) ;;
  build) build "${@:2}" ;;
  start) [ $# = 2 ] || die "start DIR"; start "$2" ;;
  stop) [ $# = 2 ] || die "stop DIR"; stop "$2" ;;
  status) [ $# = 2 ] || die "status DIR"; status "$2" ;;
  *) sed -n '2,10p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
