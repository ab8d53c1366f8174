"""What the test classes share: the one cluster, with the operator of the chart installed once."""
import json
import time
import unittest

import cluster

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def install_operator(c):
    """Seconds that `helm install --wait` took; none when the operator is there."""
    if c.get("Namespace", cluster.MODELS):
        return None
    for name in (cluster.OPERATOR, cluster.MODELS):
        c.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}})
    started = time.monotonic()
    c.helm("install", "ashlar", cluster.CHART, "-n", cluster.OPERATOR, "--set", "metacontroller.install=true", "--wait",
           "--timeout", "3m")
    return time.monotonic() - started


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = cluster.CLUSTER
        install_operator(cls.c)

    def apply(self, manifest):
        """Creates a model that is deleted, with everything of it, when the test ends."""
        name = manifest["metadata"]["name"]
        self.addCleanup(self.remove, name)
        return self.c.create(manifest)

    def answers(self, name, seconds=30):
        """A request through the Service. What forwards it hears of a ready pod a little later than the model says so."""
        request = {"model": "demo", "prompt": "a stone", "max_tokens": 4}
        status, text = self.c.wait(f"{name} answers", seconds,
                                   lambda: cluster.post(self.c.address(name), "/v1/completions", request))
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def remove(self, name, seconds=120):
        if self.c.get("InferenceModel", name):
            self.c.delete("InferenceModel", name)
        self.gone(name, seconds)

    def gone(self, name, seconds=120):
        self.c.wait(f"{name} is gone", seconds, lambda: self.c.get("InferenceModel", name) is None)
        left = set()

        def none():
            left.clear()
            left.update(self.c.children(name), {("Pod", p["metadata"]["name"]) for p in self.c.pods(name)})
            return not left
        try:
            self.c.wait("no orphans", 60, none)
        except AssertionError:
            self.fail(f"left of {name}: {left}")
