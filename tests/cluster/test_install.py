"""What a user does first: install the chart, apply the CPU sample, look at it, ask it."""
import http.client
import json
import os
import time
import unittest

import cluster
from case import ClusterTest, install_operator
from cluster import quick_demo, sample


class Install(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.c = cluster.CLUSTER
        cls.install_seconds = install_operator(cls.c)

    def test_cpu_sample_becomes_ready_and_answers(self):
        if self.install_seconds is not None:
            print(f"helm install --wait: {self.install_seconds:.1f} s", end=" ", flush=True)
        started = time.monotonic()
        self.c.kubectl("apply", "-n", cluster.MODELS, "-f", f"{cluster.SAMPLES}/im-cpu-demo.yaml")
        self.addCleanup(self.remove, "demo")
        self.c.ready("demo")
        ready = time.monotonic() - started
        columns, row = self.c.kubectl("get", "im", "-n", cluster.MODELS).stdout.strip().split("\n")
        self.assertEqual(columns.split(), ["NAME", "READY", "REASON", "PLATFORM", "BACKENDS", "REPLICAS", "AGE"])
        name, is_ready, reason, platform, backends, replicas, _ = row.split()
        self.assertEqual((name, is_ready, reason, platform, replicas), ("demo", "True", "Ready", "cpu", "1"))
        self.assertIn("full_attention=CPU_PAGED", backends.split(","))
        self.assertTrue(self.answers("demo")["choices"][0]["text"])
        print(f"apply to Ready: {ready:.1f} s, to an answer: {time.monotonic() - started:.1f} s", end=" ", flush=True)

        status = self.c.get("InferenceModel", "demo")["status"]
        for condition in status["conditions"]:
            expected = "False" if condition["type"] in ("Progressing", "Degraded") else "True"
            self.assertEqual(condition["status"], expected, condition)
        group = status["kvGroups"][0]
        self.assertEqual((group["replicasAgreeing"], group["replicasTotal"]), (1, 1))
        self.assertGreater(status["capacity"]["tokens"], 0)
        self.assertEqual(status["endpoints"]["service"], "demo")

    def test_the_pod_keeps_to_its_contract(self):
        self.apply(quick_demo("contract"))
        self.c.ready("contract")
        [pod] = self.c.pods("contract")
        spec = pod["spec"]
        self.assertFalse(spec["automountServiceAccountToken"])
        self.assertNotIn("kube-api-access", json.dumps(spec["volumes"]))
        self.assertFalse(spec["enableServiceLinks"])
        self.assertEqual(pod["status"]["containerStatuses"][0]["restartCount"], 0)
        connection = http.client.HTTPConnection(pod["status"]["podIP"], 8000, timeout=5)
        connection.request("GET", "/status")
        status = json.loads(connection.getresponse().read())
        stored = self.c.get("InferenceModel", "contract")
        self.assertEqual(status["digest"], stored["status"]["modelDigest"])
        self.assertEqual(pod["metadata"]["annotations"]["ashlar.dev/model-digest"], status["digest"])

    def test_at_rest_nothing_is_written(self):
        self.apply(quick_demo("rest"))
        self.c.ready("rest")

        def versions():
            kinds = ["InferenceModel", "Deployment", "Service", "ConfigMap", "NetworkPolicy"]
            return {(kind, item["metadata"]["name"]): item["metadata"]["resourceVersion"] for kind in kinds
                    for item in self.c.list(kind, selector="" if kind == "InferenceModel" else "ashlar.dev/model=rest")}
        before = self.c.wait("nothing moves", 60, lambda: (first := versions(), time.sleep(5), versions() == first and first)[2])
        time.sleep(20)
        self.assertEqual(versions(), before)

    def test_every_sample_is_accepted_by_the_api_server(self):

        for name in sorted(os.listdir(cluster.SAMPLES)):
            if name.startswith("im-") or name == "inferencemodel.yaml":
                with self.subTest(sample=name):
                    self.c.create(sample(name), dry_run=True)

    def test_two_models_do_not_share_anything(self):
        self.apply(quick_demo("one"))
        self.apply(quick_demo("two"))
        self.c.ready("one")
        self.c.ready("two")
        self.remove("one")
        self.assertEqual(self.c.condition("two")["status"], "True")
        self.answers("two")


if __name__ == "__main__":
    unittest.main()
