"""The control plane, the nodes and what tests ask of them. One cluster for all tests of a run."""
import http.client
import json
import os
import signal
import ssl
import subprocess
import threading
import time
import urllib.parse

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.realpath(f"{HERE}/../..")
BUILD, WORK, KC_CACHE = os.environ["BUILD"], os.environ["WORK"], os.environ["KC_CACHE"]
SMOLLM2 = os.environ["SMOLLM2"]  # a small real model
BIN = f"{KC_CACHE}/bin"
CHART = f"{ROOT}/charts/ashlar"
SAMPLES = f"{ROOT}/manifests/samples"
OPERATOR, MODELS = "ashlar", "models"  # namespaces
PATIENCE = 600  # seconds after which what has not come counts as missing, also on a machine that is busy

API = {  # kind: (API prefix, plural)
    "Namespace": ("api/v1", "namespaces"), "Node": ("api/v1", "nodes"), "Pod": ("api/v1", "pods"),
    "Service": ("api/v1", "services"), "ConfigMap": ("api/v1", "configmaps"), "Event": ("api/v1", "events"),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims"),
    "Deployment": ("apis/apps/v1", "deployments"), "ReplicaSet": ("apis/apps/v1", "replicasets"),
    "Job": ("apis/batch/v1", "jobs"), "Lease": ("apis/coordination.k8s.io/v1", "leases"),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles"), "ClusterRole": ("apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets"),
    "NetworkPolicy": ("apis/networking.k8s.io/v1", "networkpolicies"),
    "HorizontalPodAutoscaler": ("apis/autoscaling/v2", "horizontalpodautoscalers"),
    "InferenceModel": ("apis/ashlar.dev/v1alpha1", "inferencemodels"),
    "CompositeController": ("apis/metacontroller.k8s.io/v1alpha1", "compositecontrollers"),
    "PodMonitor": ("apis/monitoring.coreos.com/v1", "podmonitors"),
    "ScaledObject": ("apis/keda.sh/v1alpha1", "scaledobjects"),
    "LeaderWorkerSet": ("apis/leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
    "ResourceClaimTemplate": ("apis/resource.k8s.io/v1", "resourceclaimtemplates"),
}
# What NVIDIA's feature discovery says of a node.
H200 = {"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771", "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.compute.major": "9", "nvidia.com/gpu.compute.minor": "0"}
CLUSTER_SCOPED = {"Namespace", "Node", "CompositeController", "ClusterRole"}
CHILD_KINDS = ["Deployment", "Service", "ConfigMap", "PodDisruptionBudget", "NetworkPolicy", "HorizontalPodAutoscaler",
               "PersistentVolumeClaim", "Job"]


class Refused(Exception):
    """The API server's refusal, with its message."""

    def __init__(self, status, body):
        self.status = status
        try:
            self.message = json.loads(body).get("message", body)
        except ValueError:
            self.message = body
        super().__init__(f"{status}: {self.message}")


class Process:
    """A program beside the tests, with its log in WORK."""

    def __init__(self, name, *command, env=None):
        self.name, self.command, self.env = name, command, env
        self.start()

    def start(self):
        with open(f"{WORK}/{self.name}.log", "a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **(self.env or {})})

    def kill(self):
        self.process.kill()
        self.process.wait()


class Cluster:
    def __init__(self):
        self.folder = f"{WORK}/control-plane"
        started = time.monotonic()
        self._control_plane("start")
        environment = {}
        with open(f"{self.folder}/env") as file:
            for line in file:
                key, _, value = line.removeprefix("export ").strip().partition("=")
                environment[key] = value
        self.kubeconfig, self.server = environment["KUBECONFIG"], urllib.parse.urlparse(environment["APISERVER"])
        os.environ["KUBECONFIG"] = self.kubeconfig
        self.tls = ssl.create_default_context(cafile=f"{self.folder}/pki/ca.crt")
        self.tls.load_cert_chain(f"{self.folder}/pki/admin.crt", f"{self.folder}/pki/admin.key")
        self.connections = threading.local()
        self.network = Process("network", f"{BIN}/ashlar-test-network", f"--kubeconfig={self.kubeconfig}",
                               f"--apiserver={self.server.netloc}")
        self.nodes = {}
        for number, name in enumerate(("node-a", "node-b"), 1):
            self.add_node(name, number)
        print(f"cluster: control plane and nodes after {time.monotonic() - started:.1f} s", flush=True)

    def _control_plane(self, verb):
        subprocess.run([f"{HERE}/control-plane.sh", verb, self.folder], check=True)

    def add_node(self, name, number):
        images = {"ashlar/hooks:0.1.0": f"{BUILD}/bin/ashlar-hooks", "ashlar/runtime-cpu:0.1.0": f"{BUILD}/bin/ashlar",
                  "ghcr.io/metacontroller/metacontroller:v4.17.2": os.environ.get("METACONTROLLER", f"{BIN}/ashlar-test-driver"),
                  "ashlar/hooks:0.1.1": f"{BUILD}/bin/ashlar-hooks"}
        self.nodes[name] = Process(name, f"{BIN}/ashlar-test-kubelet", f"--kubeconfig={self.kubeconfig}", f"--node={name}",
                                   f"--subnet=10.244.{number}.0", f"--dir={WORK}/{name}",
                                   *(f"--image={image}={program}" for image, program in images.items()))

    # The API server

    def api(self, method, path, body=None, content="application/json"):
        text = json.dumps(body) if body is not None else None
        kept = getattr(self.connections, "kept", None)
        self.connections.kept = None
        if kept:
            try:
                return self._ask(kept, method, path, text, content)
            except (OSError, http.client.HTTPException):
                kept.close()  # an API server of before
        fresh = http.client.HTTPSConnection(self.server.hostname, self.server.port, context=self.tls, timeout=60)
        return self._ask(fresh, method, path, text, content)

    def _ask(self, connection, method, path, text, content):
        connection.request(method, path, text, {"Content-Type": content})
        response = connection.getresponse()
        answer = response.read().decode()
        self.connections.kept = connection
        if response.status >= 300:
            raise Refused(response.status, answer)
        return json.loads(answer)

    @staticmethod
    def path(kind, name="", namespace=MODELS):
        prefix, plural = API[kind]
        scope = "" if kind in CLUSTER_SCOPED else f"namespaces/{namespace}/"
        return f"/{prefix}/{scope}{plural}" + (f"/{name}" if name else "")

    def get(self, kind, name, namespace=MODELS):
        """None when there is none."""
        try:
            return self.api("GET", self.path(kind, name, namespace))
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def list(self, kind, namespace=MODELS, selector=""):
        query = "?labelSelector=" + urllib.parse.quote(selector) if selector else ""
        return self.api("GET", self.path(kind, namespace=namespace) + query)["items"]

    def create(self, manifest, namespace=MODELS, dry_run=False):
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.api("POST", self.path(manifest["kind"], namespace=namespace) + query, manifest)

    def patch(self, kind, name, change, namespace=MODELS, subresource=""):
        """A JSON merge patch."""
        path = self.path(kind, name, namespace) + (f"/{subresource}" if subresource else "")
        return self.api("PATCH", path + "?fieldValidation=Strict", change, "application/merge-patch+json")

    def delete(self, kind, name, namespace=MODELS):
        return self.api("DELETE", self.path(kind, name, namespace))

    def kubectl(self, *arguments, check=True, stdin=None):
        result = subprocess.run([f"{BIN}/kubectl", *arguments], capture_output=True, text=True, input=stdin)
        if check and result.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {result.stderr}")
        return result

    def helm(self, *arguments, check=True):
        home = f"{WORK}/helm"
        result = subprocess.run([f"{BIN}/helm", *arguments], capture_output=True, text=True,
                                env={**os.environ, "HELM_CACHE_HOME": home, "HELM_CONFIG_HOME": home, "HELM_DATA_HOME": home})
        if check and result.returncode != 0:
            raise AssertionError(f"helm {' '.join(arguments)}: {result.stderr}{result.stdout}")
        return result

    def install(self, verb="install", chart=CHART, *more):
        return self.helm(verb, "ashlar", chart, "-n", OPERATOR, "--wait", "--timeout", f"{PATIENCE}s", "--set",
                         "metacontroller.install=true,hooks.downloadImage=registry.example/fetch:1", *more)

    def asked(self, account):
        """What the pods of a service account have asked the API server, as its audit log has it."""
        user = f"system:serviceaccount:{OPERATOR}:{account}"
        with open(f"{self.folder}/audit.log") as file:
            return [entry for entry in map(json.loads, file) if entry["user"]["username"] == user]

    def restart_apiserver(self):
        with open(f"{self.folder}/pids") as file:
            pids = {name: int(pid) for pid, name in (line.split() for line in file)}
        with open(f"/proc/{pids['kube-apiserver']}/cmdline") as file:
            command = file.read().split("\0")[:-1]
        os.kill(pids["kube-apiserver"], signal.SIGKILL)
        time.sleep(5)  # long enough that every client has seen it gone
        self.apiserver = Process("kube-apiserver-again", *command)
        self.wait("the API server is back", lambda: self.get("Namespace", MODELS))

    def claim(self, name, folder):
        """A folder of this machine, in the models' namespace as a claim of this name."""
        size = {"storage": "1Gi"}
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "capacity": size, "accessModes": ["ReadOnlyMany"], "hostPath": {"path": folder}, "storageClassName": "",
            "claimRef": {"namespace": MODELS, "name": name}}}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": MODELS}, "spec": {
            "accessModes": ["ReadOnlyMany"], "storageClassName": "", "volumeName": name, "resources": {"requests": size}}}
        self.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, (volume, claim))))

    # Models

    def wait(self, what, done):
        """The first true value of `done`. A refused connection counts as false, and so does what is not there yet."""
        start = time.monotonic()
        while True:
            try:
                value = done()
                if value:
                    return value
            except (OSError, http.client.HTTPException, Refused, TypeError, KeyError, ValueError):
                pass
            if time.monotonic() - start > PATIENCE:
                raise AssertionError(f"not within {PATIENCE} s: {what}")
            time.sleep(0.2)

    def condition(self, name, kind="Ready", namespace=MODELS):
        """The condition of a model, {} before there is one of its present generation."""
        model = self.get("InferenceModel", name, namespace) or {}
        for condition in model.get("status", {}).get("conditions", []):
            if condition["type"] == kind and condition["observedGeneration"] == model["metadata"]["generation"]:
                return condition
        return {}

    def wait_condition(self, name, kind, status, reason=None, namespace=MODELS):
        seen = {}

        def reached():
            seen.update(self.condition(name, kind, namespace) or {"reason": "there is none"})
            return seen.get("status") == status and (reason is None or seen["reason"] == reason)
        try:
            self.wait("", reached)
        except AssertionError:
            model = self.get("InferenceModel", name, namespace) or {}
            raise AssertionError(f"{name} is not {kind}={status} {reason or ''} after {PATIENCE} s, but {seen}\n"
                                 + yaml.safe_dump(model.get("status", {}))) from None
        return seen

    def ready(self, name, namespace=MODELS):
        return self.wait_condition(name, "Ready", "True", "Ready", namespace)

    def pods(self, model, namespace=MODELS):
        return self.list("Pod", namespace, f"ashlar.dev/model={model}")

    def children(self, model, namespace=MODELS):
        """(kind, name) of everything that carries the model's label."""
        found = {(kind, item["metadata"]["name"]) for kind in CHILD_KINDS
                 for item in self.list(kind, namespace, f"ashlar.dev/model={model}")}
        return found

    @staticmethod
    def signal_pod(pod, number):
        """To the program of the pod."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/net/fib_trie") as addresses:
                    if pod["status"]["podIP"] + "\n" in addresses.read():
                        os.kill(int(pid), number)
                        return
            except OSError:
                pass
        raise AssertionError(f"no process of {pod['metadata']['name']}")

    def address(self, service, namespace=MODELS):
        spec = self.get("Service", service, namespace)["spec"]
        return spec["clusterIP"], spec["ports"][0]["port"]


def model(name, spec):
    return {"apiVersion": "ashlar.dev/v1alpha1", "kind": "InferenceModel", "metadata": {"name": name}, "spec": spec}


def fake_node(name, resources, labels=()):
    """A node that KWOK plays: its pods are ready at once and run nothing."""
    total = {"cpu": "64", "memory": "512Gi", "pods": "110", **resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": name, "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **dict(labels)}},
            "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
            "status": {"allocatable": total, "capacity": total}}


def demo(name, **more):
    """The built-in model."""
    spec = {"accelerator": {"vendor": "cpu"}, "rollout": {"allowPlanChange": True},
            "model": {"source": {"builtin": "demo"}, "kv": {"memory": "64MiB"}}}
    for key, value in more.items():
        spec[key] = {**spec[key], **value} if isinstance(value, dict) and key in spec else value
    return model(name, spec)


def quick_demo(name, **more):
    """The same with short waits at a pod's end, for tests that are not about them and lose no request by them."""
    manifest = demo(name, drain={"preStopSeconds": 1}, **more)
    manifest["spec"]["model"]["server"] = {"lameDuckSeconds": 1, "drainSeconds": 10}
    return manifest


def sample(name):
    with open(f"{SAMPLES}/{name}") as file:
        return yaml.safe_load(file)


def get(address, path):
    return _exchange(address, "GET", path, None)


def post(address, path, body):
    return _exchange(address, "POST", path, json.dumps(body))


def _exchange(address, method, path, text):
    """(status, body)"""
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        connection.request(method, path, text, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()
