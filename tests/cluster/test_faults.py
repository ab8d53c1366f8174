"""What breaks under a model that serves: hooks, the API server, a node, what others change."""
import signal
import time
import unittest

import cluster
from case import ClusterTest, alone, lane
from cluster import demo, quick_demo
from load import Load


class Faults(ClusterTest):
    @alone
    def test_hooks_killed_in_the_middle_of_a_rollout(self):
        self.apply(demo("unhooked", replicas=2, drain={"preStopSeconds": 5}))
        self.c.ready("unhooked")
        with Load(self.c.address("unhooked")) as load:
            self.c.patch("InferenceModel", "unhooked", {"spec": {"pod": {"annotations": {"test/round": "1"}}}})
            self.c.wait("the rollout has begun", lambda: len(self.c.pods("unhooked")) > 2)
            self.c.patch("Deployment", "ashlar-hooks", {"spec": {"replicas": 0}}, namespace=cluster.OPERATOR)
            self.c.wait("no hooks", lambda: not self.c.list("Pod", cluster.OPERATOR, "app.kubernetes.io/name=ashlar-hooks"))
            for number in range(50):  # changes that nobody answers, for 30 s
                self.c.patch("InferenceModel", "unhooked", {"spec": {"pod": {"annotations": {"test/round": str(number)}}}})
                time.sleep(0.6)
            self.assertTrue(self.c.get("Deployment", "unhooked"), "a child went while the hooks were away")
            self.c.patch("Deployment", "ashlar-hooks", {"spec": {"replicas": 2}}, namespace=cluster.OPERATOR)
            self.c.ready("unhooked")
            self.c.wait("only pods of the last change", lambda: [p["metadata"]["annotations"].get("test/round")
                                                                     for p in self.c.pods("unhooked")] == ["49", "49"])
        self.assertEqual(load.failures, [])

    @alone
    def test_api_server_restarted_in_the_middle_of_a_rollout(self):
        self.apply(demo("restarted", replicas=2))
        self.c.ready("restarted")
        with Load(self.c.address("restarted")) as load:
            self.c.patch("InferenceModel", "restarted", {"spec": {"pod": {"annotations": {"test/round": "1"}}}})
            self.c.wait("the rollout has begun", lambda: len(self.c.pods("restarted")) > 2)
            self.c.restart_apiserver()
            self.c.ready("restarted")
            self.c.wait("only new pods", lambda: [p["metadata"]["annotations"].get("test/round")
                                                      for p in self.c.pods("restarted")] == ["1", "1"])
        self.assertEqual(load.failures, [])

    @lane("nodes")
    def test_a_node_that_is_gone(self):
        """Only this model's pods tolerate the node, and they prefer it."""
        taint = {"key": "test/moved", "effect": "NoSchedule"}
        self.c.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-c", "labels": {"kubernetes.io/hostname": "node-c"}},
                       "spec": {"taints": [taint]}})
        self.addCleanup(self.delete, "node-c", "Node")
        self.c.add_node("node-c", 3)
        self.c.wait("the node has room", lambda: self.c.get("Node", "node-c")["status"].get("allocatable"))
        self.c.wait("the node is ready", lambda: [t["key"] for t in self.c.get("Node", "node-c")["spec"]["taints"]] == [taint["key"]])
        there = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-c"]}]}
        self.apply(quick_demo("moved", pod={"tolerations": [{"key": "test/moved", "operator": "Exists"}], "affinity": {"nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": there}]}}}))
        self.c.ready("moved")
        [pod] = self.c.pods("moved")
        self.assertEqual(pod["spec"]["nodeName"], "node-c")
        self.c.nodes.pop("node-c").kill()  # and with it its pods
        self.c.delete("Node", "node-c")
        gone = time.monotonic()
        self.c.wait("another pod", lambda: [p for p in self.c.pods("moved") if p["metadata"]["uid"] != pod["metadata"]["uid"]])
        self.answers("moved")
        self.c.ready("moved")
        self.figures.append(f"serves again {time.monotonic() - gone:.0f} s after the node")

    def test_what_others_change_or_delete_is_put_back(self):
        self.apply(quick_demo("drifted"))
        self.c.ready("drifted")
        self.c.patch("Deployment", "drifted", {"spec": {"minReadySeconds": 99}})
        self.c.patch("Service", "drifted", {"spec": {"selector": {"ashlar.dev/model": "other"}}})
        self.c.delete("NetworkPolicy", "drifted")
        self.c.wait("the Deployment is as wished", lambda: self.c.get("Deployment", "drifted")["spec"].get("minReadySeconds", 0) == 0)
        self.c.wait("the Service is as wished",
                    lambda: self.c.get("Service", "drifted")["spec"]["selector"] == {"ashlar.dev/model": "drifted"})
        self.c.wait("the policy is back", lambda: self.c.get("NetworkPolicy", "drifted"))
        self.c.delete("Deployment", "drifted")
        self.c.wait("the Deployment is back", lambda: self.c.get("Deployment", "drifted"))
        self.c.ready("drifted")

    def test_a_process_that_dies_is_told_and_healed(self):
        self.apply(quick_demo("died"))
        self.c.ready("died")
        [pod] = self.c.pods("died")
        since = self.c.condition("died")["lastTransitionTime"]
        time.sleep(1)  # times are in whole seconds
        self.c.signal_pod(pod, signal.SIGKILL)
        self.c.wait("it was not ready", lambda: self.c.condition("died")["lastTransitionTime"] != since)
        self.c.ready("died")
        [again] = self.c.pods("died")
        self.assertEqual(again["metadata"]["uid"], pod["metadata"]["uid"])
        self.assertEqual(again["status"]["containerStatuses"][0]["restartCount"], 1)

    def test_a_process_that_stands_still_for_six_seconds_is_not_restarted(self):
        self.apply(quick_demo("stopped"))
        self.c.ready("stopped")
        [pod] = self.c.pods("stopped")
        with Load(self.c.address("stopped")) as load:
            self.c.wait("requests run", lambda: load.answered > 20)
            self.c.signal_pod(pod, signal.SIGSTOP)
            time.sleep(6)
            self.c.signal_pod(pod, signal.SIGCONT)
            answered = load.answered
            self.c.wait("requests run again", lambda: load.answered > answered + 20)
        # While it is not ready, the Service refuses; what reached the process waits for it.
        self.assertEqual([failure for failure in load.failures if failure.seconds > 3 or not failure.refused()], [])
        self.c.ready("stopped")
        [pod] = self.c.pods("stopped")
        self.assertEqual(pod["status"]["containerStatuses"][0]["restartCount"], 0)


if __name__ == "__main__":
    unittest.main()
