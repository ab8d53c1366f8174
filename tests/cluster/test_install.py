"""What a user does first: install the chart, apply the CPU sample, look at it, ask it."""
import json
import os
import time
import unittest

import cluster
from case import ClusterTest, lane
from cluster import quick_demo, sample


class Install(ClusterTest):
    def test_cpu_sample_becomes_ready_and_answers(self):
        started = time.monotonic()
        self.c.kubectl("apply", "-n", cluster.MODELS, "-f", f"{cluster.SAMPLES}/im-cpu-demo.yaml")
        self.addCleanup(self.remove, "demo")
        self.c.ready("demo")
        ready = time.monotonic() - started
        columns, row = self.c.kubectl("get", "im", "demo", "-n", cluster.MODELS).stdout.strip().split("\n")
        self.assertEqual(columns.split(), ["NAME", "READY", "REASON", "PLATFORM", "BACKENDS", "REPLICAS", "AGE"])
        name, is_ready, reason, platform, backends, replicas, _ = row.split()
        self.assertEqual((name, is_ready, reason, platform, replicas), ("demo", "True", "Ready", "cpu", "1"))
        self.assertIn("full_attention=CPU_PAGED", backends.split(","))
        self.assertTrue(self.answers("demo")["choices"][0]["text"])
        self.figures.append(f"apply to Ready: {ready:.1f} s, to an answer: {time.monotonic() - started:.1f} s")

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
        status = json.loads(cluster.get((pod["status"]["podIP"], 8000), "/status")[1])
        stored = self.c.get("InferenceModel", "contract")
        self.assertEqual(status["digest"], stored["status"]["modelDigest"])
        self.assertEqual(pod["metadata"]["annotations"]["ashlar.dev/model-digest"], status["digest"])

    @lane("nodes")  # which others see in their status
    def test_at_rest_nothing_is_written(self):
        self.apply(quick_demo("rest"))
        self.c.ready("rest")

        def versions():
            found = [self.c.get("InferenceModel", "rest")]
            for kind in ("Deployment", "Service", "ConfigMap", "NetworkPolicy"):
                found += self.c.list(kind, selector="ashlar.dev/model=rest")
            return {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in found}
        before = self.c.wait("nothing moves", lambda: (first := versions(), time.sleep(5), versions() == first and first)[2])
        time.sleep(20)
        self.assertEqual(versions(), before)

    def test_every_sample_is_accepted_by_the_api_server(self):
        for name in sorted(os.listdir(cluster.SAMPLES)):
            if name.startswith("im-") or name == "inferencemodel.yaml":
                with self.subTest(sample=name):
                    self.c.create(sample(name), namespace="default", dry_run=True)

    def test_a_switch_reaches_the_program_as_it_was_set(self):
        """HE-09. Whether a prompt is found again tells what the program has read."""
        prompt = {"model": "demo", "prompt": "an ashlar is a stone " * 20, "max_tokens": 1}
        for switch in (True, False):
            self.apply(quick_demo(f"prefix-{switch}".lower(), model={"kv": {"memory": "64MiB", "prefixCache": switch}}))
        for switch in (True, False):
            name = f"prefix-{switch}".lower()
            self.c.ready(name)
            [pod] = self.c.pods(name)
            for _ in range(2):
                self.assertEqual(cluster.post((pod["status"]["podIP"], 8000), "/v1/completions", prompt)[0], 200)
            engine = json.loads(cluster.get((pod["status"]["podIP"], 8000), "/status")[1])["engine"]
            self.assertEqual(engine["cachedPromptTokens"] > 0, switch, engine)

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
