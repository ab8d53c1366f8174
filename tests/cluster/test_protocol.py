"""The driver is held to the requests that Metacontroller 4.17 sent in the same course of events."""
import gzip
import http.server
import json
import threading
import unittest

import cluster
from case import ClusterTest, lane

WIDGETS = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.test.example"},
           "spec": {"group": "test.example", "scope": "Namespaced",
                    "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
                    "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                  "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def recorded():
    with gzip.open(f"{cluster.HERE}/metacontroller_requests.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def shape(path, request):
    """What a hook may rely on, without what differs from run to run."""
    parent = request["parent"]
    uid = parent["metadata"]["uid"]

    def child(name, value):
        metadata = value["metadata"]
        labels = {key: "UID" if key == "controller-uid" and label == uid else label for key, label in metadata["labels"].items()}
        owners = [{**owner, "uid": "UID" if owner["uid"] == uid else owner["uid"]} for owner in metadata["ownerReferences"]]
        return name, value["apiVersion"], value["kind"], sorted(labels.items()), json.dumps(owners, sort_keys=True)
    out = {
        "path": path, "keys": sorted(request), "controller": (request["controller"]["kind"], request["controller"]["metadata"]["name"]),
        "parent": (parent["kind"], parent["metadata"]["finalizers"], "deletionTimestamp" in parent["metadata"]),
        "finalizing": request.get("finalizing"),
        "children": [(kind, [child(*item) for item in sorted(objects.items())]) for kind, objects in sorted(request.get("children", {}).items())],
        "related": [(kind, sorted(name for name in objects if name == "gpu-0")) for kind, objects in sorted(request.get("related", {}).items())]}
    return json.dumps(out, sort_keys=True)


class Hook(http.server.BaseHTTPRequestHandler):
    """One Deployment for each Widget; keeps what it is sent."""
    protocol_version = "HTTP/1.1"
    requests = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append((self.path, request))
        body = json.dumps(getattr(self, self.path.strip("/"))(request)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def customize(self, request):
        return {"relatedResources": [{"apiVersion": "v1", "resource": "nodes"}]}

    def sync(self, request):
        name, labels = request["parent"]["metadata"]["name"], {"app": request["parent"]["metadata"]["name"]}
        found = request["children"]["Deployment.apps/v1"].get(f"default/{name}", {})
        return {"status": {"ready": found.get("status", {}).get("readyReplicas", 0)}, "children": [{
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels},
            "spec": {"replicas": request["parent"]["spec"]["replicas"], "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none/none"}],
                                                          "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
                                                          "nodeSelector": {"kubernetes.io/hostname": "gpu-0"}}}}}]}

    def finalize(self, request):
        left = any(request["children"].values())
        return {"status": {"ready": 0}, "children": [], "finalized": not left}


class Protocol(ClusterTest):
    def widget(self, method, body=None, content="application/merge-patch+json"):
        path = "/apis/test.example/v1/namespaces/default/widgets" + ("" if method == "POST" else "/w1")
        return self.c.api(method, path, body, content if method == "PATCH" else "application/json")

    def ready(self, replicas):
        self.c.wait(f"{replicas} ready", lambda: self.widget("GET").get("status", {}).get("ready") == replicas)

    @lane("nodes")
    def test_requests_are_those_of_metacontroller(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        self.c.kubectl("apply", "-f", "-", stdin=json.dumps(WIDGETS))
        self.c.kubectl("wait", "--for=condition=Established", "crd/widgets.test.example", f"--timeout={cluster.PATIENCE}s")
        self.c.create(cluster.fake_node("gpu-0", {"nvidia.com/gpu": "8"}))
        self.addCleanup(self.c.delete, "Node", "gpu-0")
        hooks = {name: {"version": "v2", "webhook": {"url": f"http://127.0.0.1:{server.server_port}/{name}", "timeout": "5s"}}
                 for name in ("sync", "finalize", "customize")}
        self.c.create({"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController",
                       "metadata": {"name": "widgets", "labels": {"test": "protocol"}},
                       "spec": {"generateSelector": True, "hooks": hooks,
                                "parentResource": {"apiVersion": "test.example/v1", "resource": "widgets"},
                                "childResources": [{"apiVersion": "apps/v1", "resource": "deployments",
                                                    "updateStrategy": {"method": "InPlace"}}]}})
        driver = cluster.Process("widget-driver", f"{cluster.BIN}/ashlar-test-driver", f"--kubeconfig={self.c.kubeconfig}",
                                 "--target-label-selector=test=protocol", "--health=127.0.0.1:0")
        self.addCleanup(driver.kill)
        self.widget("POST", {"apiVersion": "test.example/v1", "kind": "Widget", "metadata": {"name": "w1"}, "spec": {"replicas": 2}})
        self.ready(2)
        self.widget("PATCH", {"spec": {"replicas": 3}})
        self.ready(3)
        self.c.patch("Deployment", "w1", {"spec": {"replicas": 1}}, namespace="default")  # drift
        self.c.wait("healed", lambda: self.c.get("Deployment", "w1", "default")["spec"]["replicas"] == 3)
        uid = self.c.get("Deployment", "w1", "default")["metadata"]["uid"]
        self.c.delete("Deployment", "w1", "default")
        self.c.wait("made again",
                    lambda: self.c.get("Deployment", "w1", "default")["metadata"]["uid"] != uid)
        self.ready(3)
        self.widget("DELETE")
        self.c.wait("finalized", lambda: self.gone_widget())

        theirs = {shape(entry["path"], entry["request"]) for entry in recorded()}
        ours = {shape(path, request) for path, request in Hook.requests}
        self.assertEqual(sorted(ours - theirs), [], "requests that Metacontroller did not send")
        self.assertEqual(sorted(theirs - ours), [], "requests that only Metacontroller sent")

    def gone_widget(self):
        try:
            self.widget("GET")
        except cluster.Refused as refused:
            return refused.status == 404


if __name__ == "__main__":
    unittest.main()
