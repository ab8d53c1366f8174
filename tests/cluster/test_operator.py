"""Two Metacontrollers, of which one works; and others who write what it writes."""
import signal
import time
import unittest

import cluster
from case import ClusterTest, alone
from cluster import demo, model, quick_demo
from load import Load

WRITES = {"create", "update", "patch", "delete"}
OF_THE_ELECTION = {"leases", "events"}


class Operator(ClusterTest):
    def controllers(self):
        return self.c.list("Pod", cluster.OPERATOR, "app.kubernetes.io/name=ashlar-metacontroller")

    def holder(self):
        """The pod that the lease names, and since when."""
        lease = self.c.get("Lease", "metacontroller", cluster.OPERATOR)["spec"]
        [pod] = [p for p in self.controllers() if lease["holderIdentity"].startswith(p["metadata"]["name"])]
        return pod, lease["acquireTime"]

    def writers(self, since):
        """Names of the pods that have written anything of a model since then."""
        return {entry["user"]["extra"]["authentication.kubernetes.io/pod-name"][0] for entry in self.c.asked("ashlar-metacontroller")
                if entry["verb"] in WRITES and entry["objectRef"]["resource"] not in OF_THE_ELECTION
                and entry["requestReceivedTimestamp"] >= since}

    def started(self, pod):
        """When the pod's program was last started."""
        return self.c.get("Pod", pod["metadata"]["name"], cluster.OPERATOR)["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]

    def annotated(self, name, number):
        self.c.patch("InferenceModel", name, {"spec": {"pod": {"annotations": {"test/round": str(number)}}}})
        self.c.wait("only pods of this round", lambda: {p["metadata"]["annotations"].get("test/round") for p in self.c.pods(name)}
                    == {str(number)})
        self.c.ready(name)

    @alone
    def test_of_two_controllers_one_works_and_the_other_takes_over(self):
        """OP-10. The holder stands still for 30 s; when it goes on, its lease is another's. Until it has found that out, it may write
        what it knew before (Kubernetes' leases fence nothing): that is put right, and no request is lost by it."""
        self.c.install("upgrade", cluster.CHART, "--set", "metacontroller.replicas=2")
        self.addCleanup(self.c.install, "upgrade")
        self.apply(demo("led", drain={"preStopSeconds": 5}))
        self.c.ready("led")
        first, begun = self.holder()
        [other] = [p for p in self.controllers() if p["metadata"]["uid"] != first["metadata"]["uid"]]
        with Load(self.c.address("led")) as load:
            self.assertEqual(self.writers(begun), {first["metadata"]["name"]})
            before = self.started(first)
            self.c.signal_pod(first, signal.SIGSTOP)
            stopped = time.monotonic()
            self.c.wait("the lease is the other's", lambda: self.holder()[0]["metadata"]["uid"] == other["metadata"]["uid"])
            self.figures.append(f"the lease passed on after {time.monotonic() - stopped:.0f} s")
            taken = self.holder()[1]
            self.annotated("led", 1)
            self.c.patch("InferenceModel", "led", {"spec": {"replicas": 2}})
            self.c.wait("two pods", lambda: self.c.get("InferenceModel", "led")["status"].get("readyReplicas") == 2)
            self.assertEqual(self.writers(taken), {other["metadata"]["name"]})
            time.sleep(max(0.0, stopped + 30 - time.monotonic()))
            self.c.signal_pod(first, signal.SIGCONT)
            self.c.wait("the first one stands back", lambda: self.started(first) != before)
            self.annotated("led", 2)
        self.assertEqual(load.failures, [])
        self.assertEqual(self.holder()[0]["metadata"]["uid"], other["metadata"]["uid"])
        self.assertEqual(self.writers(self.started(first)), {other["metadata"]["name"]})
        self.assertEqual(self.c.get("Deployment", "led")["spec"]["replicas"], 2)
        self.assertTrue(self.c.get("PodDisruptionBudget", "led"))

    def test_kinds_of_children_that_come_and_go(self):
        """Those that no other test makes."""
        self.apply(quick_demo("grown", scaling={"provider": "hpa", "min": 1, "max": 2}))
        self.c.wait("the autoscaler", lambda: self.c.get("HorizontalPodAutoscaler", "grown"))
        self.c.patch("InferenceModel", "grown", {"spec": {"scaling": {"max": 3}}})
        self.c.wait("its new bound", lambda: self.c.get("HorizontalPodAutoscaler", "grown")["spec"]["maxReplicas"] == 3)
        self.c.patch("InferenceModel", "grown", {"spec": {"scaling": None}})
        self.c.wait("it goes", lambda: not self.c.get("HorizontalPodAutoscaler", "grown"))

        self.apply(model("fetched", {"accelerator": {"vendor": "cpu"}, "model": {"source": {"path": "/models/m.gguf"}},
                                     "source": {"uri": "hf://org/name", "cache": {"pvc": {"size": "1Gi"}}}}))
        self.c.wait("the volume", lambda: self.c.get("PersistentVolumeClaim", "fetched-models"))
        self.c.wait("the download", lambda: self.c.list("Job", selector="ashlar.dev/model=fetched"))

        self.apply(model("claimed", {"accelerator": {"vendor": "nvidia", "claim": {"deviceClassName": "gpu.nvidia.com"}},
                                     "model": {"source": {"builtin": "demo"}, "platform": "cuda"}}))

        def devices():
            [template] = self.c.list("ResourceClaimTemplate", selector="ashlar.dev/model=claimed")
            return template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"]
        self.c.wait("its claim", lambda: devices() == "gpu.nvidia.com")
        self.c.patch("InferenceModel", "claimed", {"spec": {"accelerator": {"claim": {"deviceClassName": "other"}}}})
        self.c.wait("another one", lambda: devices() == "other")

    def test_one_conflict_of_writes_is_no_error(self):
        """OP-04. Others write the model and its Deployment all the time while the operator does."""
        self.apply(quick_demo("contended"))
        self.c.ready("contended")
        for number in range(40):
            for kind in ("InferenceModel", "Deployment"):
                self.c.patch(kind, "contended", {"metadata": {"annotations": {"test/other": str(number)}}})
            self.c.patch("InferenceModel", "contended", {"spec": {"model": {"limits": {"sequences": 8 + number % 2}}}})
        self.c.ready("contended")
        conflicts = [entry for entry in self.c.asked("ashlar-metacontroller") if entry["responseStatus"]["code"] == 409
                     and entry["objectRef"].get("name") == "contended"]
        self.figures.append(f"{len(conflicts)} conflicts")
        about = [event for event in self.c.list("Event") if event["involvedObject"]["name"] == "contended"]
        self.assertEqual([event["message"] for event in about if event["reason"] == "SyncError"], [])


if __name__ == "__main__":
    unittest.main()
