"""Alerts and dashboards, as helm and kustomize render them.  test_monitoring.py HELM KUBECTL"""
import os
import subprocess
import sys
import unittest

import yaml

HELM, KUBECTL = sys.argv.pop(1), sys.argv.pop(1)
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
CHART = f"{ROOT}/charts/ashlar"
MONITORING = f"{CHART}/files/monitoring"


def template(*arguments):
    return subprocess.run([HELM, "template", "r", CHART, "-n", "ashlar", *arguments], capture_output=True, text=True)


def objects(result):
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return [o for o in yaml.safe_load_all(result.stdout) if o]


def rule_spec():
    with open(f"{MONITORING}/prometheus-rule.yaml") as file:
        return yaml.safe_load(file)["spec"]


def dashboards():
    """{file: text}"""
    texts = {}
    for name in os.listdir(MONITORING):
        if name.endswith(".json"):
            with open(f"{MONITORING}/{name}") as file:
                texts[name] = file.read()
    return texts


class Monitoring(unittest.TestCase):
    def test_nothing_is_installed_unless_asked_for(self):
        for o in objects(template("--set", "metacontroller.install=true")):
            self.assertNotEqual(o["kind"], "PrometheusRule")
            self.assertNotIn("-dashboard-", o["metadata"]["name"])

    def test_the_chart_installs_the_files(self):
        rendered = objects(template("-f", f"{CHART}/ci/monitoring-values.yaml"))
        (rule,) = [o for o in rendered if o["kind"] == "PrometheusRule"]
        self.assertEqual(rule["spec"], rule_spec())
        self.assertEqual(rule["metadata"]["labels"]["release"], "kube-prometheus-stack")
        shown = {}
        for o in rendered:
            if "-dashboard-" in o["metadata"]["name"]:
                self.assertEqual(o["metadata"]["labels"]["grafana_dashboard"], "1")
                self.assertEqual(o["metadata"]["annotations"], {"grafana_folder": "Ashlar"})
                shown.update(o["data"])
        self.assertEqual(shown, dashboards())

    def test_kustomize_installs_the_same(self):
        result = subprocess.run([KUBECTL, "kustomize", f"{ROOT}/manifests/monitoring"], capture_output=True, text=True)
        rendered = {o["kind"]: o for o in objects(result)}
        self.assertEqual(rendered["PrometheusRule"]["spec"], rule_spec())
        self.assertEqual(rendered["ConfigMap"]["data"], dashboards())
        self.assertEqual(rendered["ConfigMap"]["metadata"]["labels"], {"grafana_dashboard": "1"})

    def test_the_hooks_are_scraped_where_the_models_are(self):
        asked = ("-f", f"{CHART}/ci/monitoring-values.yaml", "--set", "metacontroller.install=true")
        self.assertNotIn("PodMonitor", [o["kind"] for o in objects(template(*asked))])
        rendered = objects(template(*asked, "--api-versions", "monitoring.coreos.com/v1/PodMonitor"))
        (monitor,) = [o for o in rendered if o["kind"] == "PodMonitor"]
        (pod,) = [o["spec"]["template"] for o in rendered if o["kind"] == "Deployment" and o["metadata"]["name"] == "r-hooks"]
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(), pod["metadata"]["labels"].items())
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        self.assertIn(endpoint["port"], [port["name"] for port in pod["spec"]["containers"][0]["ports"]])
        (policy,) = [o for o in rendered if o["kind"] == "NetworkPolicy"]
        allowed = [peer.get("namespaceSelector", {}).get("matchLabels") for peer in policy["spec"]["ingress"][0]["from"]]
        self.assertIn({"kubernetes.io/metadata.name": "monitoring"}, allowed)
        self.assertEqual(len(allowed), 2)

    def test_rules_that_the_cluster_cannot_take_are_refused(self):
        asked = ("--set", "monitoring.rules.enabled=true,metacontroller.install=true")
        self.assertIn("needs the Prometheus operator", template(*asked).stderr)
        objects(template(*asked, "--api-versions", "monitoring.coreos.com/v1/PrometheusRule"))


if __name__ == "__main__":
    unittest.main()
