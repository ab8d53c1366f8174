"""Changes of a model that serves: updates, scaling, suspension, and drains under constant load."""
import os
import time
import unittest

import cluster
from case import ClusterTest, lane
from cluster import H200, demo, fake_node, model, post, quick_demo
from load import Load

DRAINS = int(os.environ.get("DRAINS", "5"))


class Changes(ClusterTest):
    def test_an_update_rolls_without_a_lost_request(self):
        self.apply(demo("rolled", replicas=2))
        self.c.ready("rolled")
        digest = self.c.get("InferenceModel", "rolled")["status"]["modelDigest"]
        with Load(self.c.address("rolled")) as load:
            self.c.patch("InferenceModel", "rolled", {"spec": {"model": {"limits": {"sequences": 7}}}})
            self.c.ready("rolled")
            self.c.wait("the old pods are gone", lambda: len(self.c.pods("rolled")) == 2)
        self.assertEqual(load.failures, [])
        self.assertGreater(load.answered, 20)
        self.assertNotEqual(self.c.get("InferenceModel", "rolled")["status"]["modelDigest"], digest)
        self.c.wait("the old document is gone",
                    lambda: len(self.c.list("ConfigMap", selector="ashlar.dev/model=rolled")) == 1)

    def test_scale_1_3_0_1(self):
        self.apply(quick_demo("scaled"))
        self.c.ready("scaled")

        def scale(replicas):
            self.c.kubectl("scale", "im", "scaled", "-n", cluster.MODELS, f"--replicas={replicas}")
            self.c.wait_condition("scaled", "Ready", "True", "Ready" if replicas else "ScaledToZero")
            self.c.wait(f"{replicas} pods", lambda: len(self.c.pods("scaled")) == replicas)
            self.assertEqual(self.c.get("InferenceModel", "scaled")["status"].get("readyReplicas"), replicas)
        scale(3)
        self.assertTrue(self.c.get("PodDisruptionBudget", "scaled"))
        scale(0)
        self.assertIsNone(self.c.get("PodDisruptionBudget", "scaled"))
        with self.assertRaises(OSError):
            post(self.c.address("scaled"), "/v1/completions", {"model": "demo", "prompt": "a"})
        scale(1)

    def test_suspend_and_resume(self):
        self.apply(quick_demo("slept"))
        self.c.ready("slept")
        groups = self.c.get("InferenceModel", "slept")["status"]["kvGroups"]
        self.c.patch("InferenceModel", "slept", {"spec": {"suspend": True}})
        self.c.wait("no pod", lambda: not self.c.pods("slept"))
        self.c.wait_condition("slept", "Ready", "False", "Suspended")
        self.assertEqual(self.c.get("InferenceModel", "slept")["status"]["kvGroups"], groups)
        self.c.patch("InferenceModel", "slept", {"spec": {"suspend": False}})
        self.c.ready("slept")

    def test_a_changed_plan_stops_at_the_first_pod(self):
        spec = quick_demo("held", replicas=2)
        del spec["spec"]["rollout"]
        self.apply(spec)
        self.c.ready("held")
        self.c.patch("InferenceModel", "held", {"spec": {"model": {"kv": {"blockSize": 16}}}})
        held = self.c.wait_condition("held", "Ready", "False", "PlanChanged")
        self.assertIn("block 16", held["message"])
        time.sleep(5)
        new = [p for p in self.c.pods("held") if p["metadata"]["annotations"]["ashlar.dev/model-digest"]
               == self.c.get("InferenceModel", "held")["status"]["modelDigest"]]
        self.assertEqual(len(new), 1)
        self.c.patch("InferenceModel", "held", {"spec": {"rollout": {"allowPlanChange": True}}})
        self.c.ready("held")
        self.assertEqual(self.c.get("InferenceModel", "held")["status"]["kvGroups"][0]["blockSize"], 16)

    def test_deletion_under_load_ends_what_runs(self):
        self.apply(quick_demo("deleted"))
        self.c.ready("deleted")
        with Load(self.c.address("deleted")) as load:
            self.c.wait("requests run", lambda: load.answered > 20)
            self.c.delete("InferenceModel", "deleted")
            deleted = time.monotonic()
            self.gone("deleted")
        # The pod takes requests until preStop and lame duck are over; later ones get no answer at all.
        self.assertEqual([failure for failure in load.failures if failure.started < deleted or not failure.refused()], [])
        self.assertGreater(load.answered, 0)


class Drains(ClusterTest):
    def rolling(self, name, spec, drains):
        """Pods replaced one after another under load; each of `drains` pods ends while requests run."""
        self.apply(spec)
        self.c.ready(name)
        replicas = spec["spec"]["replicas"]
        started = time.monotonic()
        done = 0
        with Load(self.c.address(name)) as load:
            while done < drains:
                self.c.patch("InferenceModel", name, {"spec": {"pod": {"annotations": {"test/round": str(done)}}}})
                self.c.ready(name)
                self.c.wait("the old pods are gone", lambda: len(self.c.pods(name)) == replicas)
                done += replicas
        self.figures.append(f"{done} drains in {time.monotonic() - started:.0f} s, {load.answered} requests, {len(load.failures)} lost")
        self.assertEqual(load.failures, [])
        self.assertGreater(load.answered, 10 * done)

    @lane("drains")
    def test_drains_with_the_defaults(self):
        self.rolling("drained", demo("drained", replicas=5), DRAINS)

    @unittest.skipUnless("LONG_DRAINS" in os.environ, "LONG_DRAINS=200 runs it: drains with one second of preStop")
    def test_many_drains_with_one_second(self):
        spec = quick_demo("hurried", replicas=4, rollout={"maxSurge": 4})
        self.rolling("hurried", spec, int(os.environ["LONG_DRAINS"]))


class ScarceDevices(ClusterTest):
    lane = "nodes"

    def test_a_rollout_needs_no_spare_gpu(self):
        """One node with one GPU, which is taken: the pod is replaced in place."""
        self.c.create(fake_node("gpu-0", {"nvidia.com/gpu": "1"}, H200))
        self.addCleanup(self.c.delete, "Node", "gpu-0")
        self.apply(model("scarce", {
            "accelerator": {"vendor": "nvidia"}, "rollout": {"allowPlanChange": True},
            "pod": {"tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]},
            "model": {"platform": "cuda", "source": {"builtin": "demo"}}}))
        self.c.wait_condition("scarce", "Accepted", "True")
        first = self.c.wait("a pod", lambda: [p["metadata"]["uid"] for p in self.c.pods("scarce") if p["spec"].get("nodeName")])
        self.c.wait("it is ready", lambda: self.c.get("Deployment", "scarce")["status"].get("readyReplicas") == 1)
        self.c.patch("InferenceModel", "scarce", {"spec": {"pod": {"annotations": {"test/round": "1"}}}})
        self.c.wait("it is replaced", lambda: [p for p in self.c.pods("scarce")
                                                     if p["metadata"]["uid"] not in first and p["spec"].get("nodeName")])
        self.c.wait("the rollout ends", lambda: self.c.get("Deployment", "scarce")["status"].get("updatedReplicas") == 1
                    and self.c.get("Deployment", "scarce")["status"].get("readyReplicas") == 1)
        plan = self.c.get("InferenceModel", "scarce")["status"]["plan"]
        self.assertTrue(any(kind["fits"] and "CUDA" in kind.get("backends", "") for kind in plan), plan)

    def test_more_gpus_than_there_are(self):
        self.apply(model("crowded", {
            "accelerator": {"vendor": "nvidia"}, "replicas": 3,
            "pod": {"tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]},
            "model": {"platform": "cuda", "source": {"builtin": "demo"}}}))
        self.c.wait_condition("crowded", "Ready", "False", "NoNodeCanServe")


if __name__ == "__main__":
    unittest.main()
