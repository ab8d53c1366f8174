"""What the test classes share: the one cluster, with the operator of the chart installed once."""
import json
import time
import unittest

import cluster

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def lane(name):
    """Tests of one lane run one after another, beside all others: they change something that only one may change at a time."""
    def put(test):
        test.lane = name
        return test
    return put


def alone(test):
    """Runs when nothing else does, in the order of the files: it changes what every model needs."""
    test.alone = True
    return test


def mark(test, name):
    """What `lane` or `alone` said of a test or of its class."""
    return getattr(getattr(test, test._testMethodName), name, getattr(type(test), name, None))


def install_operator(c):
    """Seconds that `helm install --wait` took."""
    for name in (cluster.OPERATOR, cluster.MODELS):
        c.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}})
    started = time.monotonic()
    c.install()
    return time.monotonic() - started


class ClusterTest(unittest.TestCase):
    c = None  # the cluster of this run

    def __init__(self, name):
        super().__init__(name)
        self.figures = []  # what a report of this run should say

    def apply(self, manifest):
        """Creates a model that is deleted when the test ends, and waits until nothing of it is left unless the test runs alone."""
        name = manifest["metadata"]["name"]
        self.addCleanup(self.delete if mark(self, "alone") else self.remove, name)
        return self.c.create(manifest)

    def answers(self, name):
        """A request through the Service. What forwards it hears of a ready pod a little later than the model says so."""
        request = {"model": "demo", "prompt": "a stone", "max_tokens": 4}
        status, text = self.c.wait(f"{name} answers",
                                   lambda: cluster.post(self.c.address(name), "/v1/completions", request))
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def delete(self, name, kind="InferenceModel"):
        if self.c.get(kind, name):
            self.c.delete(kind, name)

    def remove(self, name):
        self.delete(name)
        self.gone(name)

    def gone(self, name):
        self.c.wait(f"{name} is gone", lambda: self.c.get("InferenceModel", name) is None)
        left = set()

        def none():
            left.clear()
            left.update(self.c.children(name), {("Pod", p["metadata"]["name"]) for p in self.c.pods(name)})
            return not left
        try:
            self.c.wait("no orphans", none)
        except AssertionError:
            self.fail(f"left of {name}: {left}")
