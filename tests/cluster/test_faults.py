"""What breaks under a model that serves: hooks, the API server, a node, what others change."""
import signal
import time
import unittest

import cluster
from case import ClusterTest
from cluster import quick_demo
from load import Load


class Faults(ClusterTest):
    def test_hooks_killed_in_the_middle_of_a_rollout(self):
        self.apply(quick_demo("unhooked", replicas=2))
        self.c.ready("unhooked", 120)
        with Load(self.c.address("unhooked")) as load:
            self.c.patch("InferenceModel", "unhooked", {"spec": {"pod": {"annotations": {"test/round": "1"}}}})
            self.c.wait("the rollout has begun", 60, lambda: len(self.c.pods("unhooked")) > 2)
            self.c.patch("Deployment", "ashlar-hooks", {"spec": {"replicas": 0}}, namespace=cluster.OPERATOR)
            self.c.wait("no hooks", 60, lambda: not self.c.list("Pod", cluster.OPERATOR, "app.kubernetes.io/name=ashlar-hooks"))
            for number in range(50):  # changes that nobody answers
                self.c.patch("InferenceModel", "unhooked", {"spec": {"pod": {"annotations": {"test/round": str(number)}}}})
            time.sleep(10)
            self.assertTrue(self.c.get("Deployment", "unhooked"), "a child went while the hooks were away")
            self.c.patch("Deployment", "ashlar-hooks", {"spec": {"replicas": 2}}, namespace=cluster.OPERATOR)
            self.c.ready("unhooked", 180)
            self.c.wait("only pods of the last change", 60, lambda: [p["metadata"]["annotations"].get("test/round")
                                                                     for p in self.c.pods("unhooked")] == ["49", "49"])
        self.assertEqual(load.failures, [])

    def test_api_server_restarted_in_the_middle_of_a_rollout(self):
        self.apply(quick_demo("restarted", replicas=2))
        self.c.ready("restarted", 120)
        with Load(self.c.address("restarted")) as load:
            self.c.patch("InferenceModel", "restarted", {"spec": {"pod": {"annotations": {"test/round": "1"}}}})
            self.c.wait("the rollout has begun", 60, lambda: len(self.c.pods("restarted")) > 2)
            self.c.restart_apiserver()
            self.c.ready("restarted", 180)
            self.c.wait("only new pods", 60, lambda: [p["metadata"]["annotations"].get("test/round")
                                                      for p in self.c.pods("restarted")] == ["1", "1"])
        self.assertEqual(load.failures, [])

    def test_a_node_that_is_gone(self):
        self.c.add_node("node-c", 3)
        self.c.wait("the node is there", 30, lambda: self.c.get("Node", "node-c"))
        self.addCleanup(lambda: self.c.get("Node", "node-c") and self.c.delete("Node", "node-c"))
        others = ("node-a", "node-b")
        for node in others:
            self.c.patch("Node", node, {"spec": {"unschedulable": True}})
        self.apply(quick_demo("moved"))
        try:
            self.c.ready("moved")
        finally:
            for node in others:
                self.c.patch("Node", node, {"spec": {"unschedulable": None}})
        [pod] = self.c.pods("moved")
        self.assertEqual(pod["spec"]["nodeName"], "node-c")
        self.c.nodes.pop("node-c").kill()  # and with it its pods
        self.c.delete("Node", "node-c")
        gone = time.monotonic()
        self.c.wait("another pod", 180, lambda: [p for p in self.c.pods("moved") if p["metadata"]["uid"] != pod["metadata"]["uid"]])
        self.answers("moved", 120)
        self.c.ready("moved", 60)
        print(f"serves again {time.monotonic() - gone:.0f} s after the node", end=" ", flush=True)

    def test_what_others_change_or_delete_is_put_back(self):
        self.apply(quick_demo("drifted"))
        self.c.ready("drifted")
        self.c.patch("Deployment", "drifted", {"spec": {"minReadySeconds": 99}})
        self.c.patch("Service", "drifted", {"spec": {"selector": {"ashlar.dev/model": "other"}}})
        self.c.delete("NetworkPolicy", "drifted")
        self.c.wait("the Deployment is as wished", 60, lambda: self.c.get("Deployment", "drifted")["spec"].get("minReadySeconds", 0) == 0)
        self.c.wait("the Service is as wished", 60,
                    lambda: self.c.get("Service", "drifted")["spec"]["selector"] == {"ashlar.dev/model": "drifted"})
        self.c.wait("the policy is back", 60, lambda: self.c.get("NetworkPolicy", "drifted"))
        self.c.delete("Deployment", "drifted")
        self.c.wait("the Deployment is back", 60, lambda: self.c.get("Deployment", "drifted"))
        self.c.ready("drifted", 120)

    def test_a_process_that_dies_is_told_and_healed(self):
        self.apply(quick_demo("died"))
        self.c.ready("died")
        [pod] = self.c.pods("died")
        self.c.signal_container("died", signal.SIGKILL)
        self.c.wait("it is not ready", 30, lambda: self.c.condition("died").get("status") == "False")
        self.c.ready("died", 120)
        [again] = self.c.pods("died")
        self.assertEqual(again["metadata"]["uid"], pod["metadata"]["uid"])
        self.assertEqual(again["status"]["containerStatuses"][0]["restartCount"], 1)

    def test_a_process_that_stands_still_for_six_seconds_is_not_restarted(self):
        self.apply(quick_demo("stopped"))
        self.c.ready("stopped")
        with Load(self.c.address("stopped")) as load:
            self.c.signal_container("stopped", signal.SIGSTOP)
            time.sleep(6)
            self.c.signal_container("stopped", signal.SIGCONT)
            time.sleep(5)
        self.assertEqual([failure for failure in load.failures if failure.seconds > 0.5], [], "what had begun was lost")
        self.c.ready("stopped")
        [pod] = self.c.pods("stopped")
        self.assertEqual(pod["status"]["containerStatuses"][0]["restartCount"], 0)


if __name__ == "__main__":
    unittest.main()
