"""The chart on a real API server: optional kinds, upgrade, restricted pods."""
import os
import shutil
import subprocess
import unittest

import yaml

import cluster
from case import ClusterTest, alone
from cluster import Refused, model, quick_demo
from prometheus import Prometheus

CRD = "inferencemodels.ashlar.dev"


class Chart(ClusterTest):
    def know_optional_kinds(self):
        self.c.kubectl("apply", "-f", f"{cluster.HERE}/crds.yaml")
        self.c.kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={cluster.PATIENCE}s")

    @alone
    def test_1_optional_kinds_are_taken_up_once_they_are_there(self):
        spec = quick_demo("watched", scaling={"provider": "keda", "min": 1, "max": 2, "metric": "queue", "target": 8})
        self.apply(spec)
        degraded = self.c.wait_condition("watched", "Degraded", "True", "MissingCRD")
        self.assertIn("ScaledObject", degraded["message"])
        self.c.ready("watched")
        self.apply(quick_demo("spread", workload="LeaderWorkerSet"))
        self.c.wait_condition("spread", "Accepted", "False", "MissingCRD")
        self.know_optional_kinds()
        self.c.install("upgrade")
        self.c.wait("KEDA's object", lambda: self.c.get("ScaledObject", "watched"))
        monitor = self.c.wait("the monitor", lambda: self.c.get("PodMonitor", "watched"))
        target = self.c.get("ScaledObject", "watched")["spec"]["scaleTargetRef"]
        self.assertEqual((target["kind"], target["name"]), ("InferenceModel", "watched"))
        self.c.wait_condition("watched", "Degraded", "False")
        self.c.wait("the set", lambda: self.c.get("LeaderWorkerSet", "spread"))
        self.scraped(monitor, self.c.get("ScaledObject", "watched")["spec"]["triggers"][0]["metadata"]["query"])

    def scraped(self, monitor, query):
        """The monitors lead a Prometheus to the pods of the model and of the hooks, and what KEDA asks of it has an answer."""
        hooks = self.c.wait("the hooks' monitor", lambda: self.c.get("PodMonitor", "ashlar-hooks", cluster.OPERATOR))
        prometheus = Prometheus(self.c, monitor, hooks)
        self.addCleanup(prometheus.kill)
        pods = {p["metadata"]["name"] for p in self.c.pods("watched") + self.c.list("Pod", cluster.OPERATOR, "app.kubernetes.io/name=ashlar-hooks")}
        self.c.wait("the scrapes", lambda: {labels["pod"] for labels, _ in prometheus.query("up == 1")} == pods)
        [(_, waiting)] = self.c.wait("KEDA's query", lambda: prometheus.query(query))
        self.assertEqual(waiting, 0)

    @alone
    def test_2_an_upgrade_restarts_no_pod_and_locks_no_object_in(self):
        """OP-07. An object that the older definition took and a rule of the newer one refuses can be deleted."""
        self.apply(quick_demo("steady"))
        self.c.ready("steady")
        before = {p["metadata"]["uid"] for p in self.c.pods("steady")}
        self.c.install("upgrade", self.previous_chart())
        with self.assertRaises(Refused):  # the older definition does not know it
            self.c.patch("InferenceModel", "steady", {"spec": {"suspend": False}})
        unsound = {"model": {"source": {"path": "/models/m.gguf"}}}
        self.c.create(model("unsound", unsound))
        self.c.wait_condition("unsound", "SourceReady", "False", "SourceInvalid")
        self.c.install("upgrade")
        with self.assertRaisesRegex(Refused, "add spec.source"):
            self.c.create(model("refused", unsound), dry_run=True)
        self.remove("unsound")
        self.c.patch("InferenceModel", "steady", {"spec": {"suspend": False}})
        self.c.ready("steady")
        self.assertEqual({p["metadata"]["uid"] for p in self.c.pods("steady")}, before)

    def previous_chart(self):
        """This chart as an earlier version of it would be: without the newest field and the rules of the definition."""
        folder = f"{cluster.WORK}/previous-chart"
        shutil.copytree(cluster.CHART, folder)
        with open(f"{folder}/Chart.yaml") as file:
            chart = yaml.safe_load(file)
        with open(f"{folder}/Chart.yaml", "w") as file:
            yaml.safe_dump({**chart, "version": "0.0.9"}, file)
        with open(f"{folder}/files/crd.yaml") as file:
            crd = yaml.safe_load(file)
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        del spec["properties"]["suspend"], spec["x-kubernetes-validations"]
        with open(f"{folder}/files/crd.yaml", "w") as file:
            yaml.safe_dump(crd, file)
        return folder

    @alone
    def test_3_every_values_file_is_accepted_by_the_api_server(self):
        self.know_optional_kinds()
        for name in sorted(os.listdir(f"{cluster.CHART}/ci")):
            with self.subTest(values=name):
                rendered = self.c.helm("template", "other", cluster.CHART, "-n", cluster.OPERATOR, "-f", f"{cluster.CHART}/ci/{name}",
                                       "--set", "checks.enabled=false").stdout
                self.c.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict",
                               "-n", cluster.OPERATOR, "-f", "-", stdin=rendered)

    @alone
    def test_3_rendered_children_are_accepted_and_restricted(self):
        """What the static mode installs, in a namespace that enforces the restricted profile."""
        for name in sorted(os.listdir(cluster.SAMPLES)):
            if not name.startswith("im-"):
                continue
            with self.subTest(sample=name):
                rendered = subprocess.run([f"{cluster.BUILD}/bin/ashlar-hooks", "render", "-f", f"{cluster.SAMPLES}/{name}",
                                           "-n", cluster.MODELS, "--download-image", "registry.example/fetch:1"],
                                          capture_output=True, text=True, check=True).stdout
                result = self.c.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=rendered)
                self.assertNotIn("PodSecurity", result.stderr + result.stdout)

    def test_4_manifests_without_helm(self):
        self.c.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-k", f"{cluster.ROOT}/manifests")


if __name__ == "__main__":
    unittest.main()
