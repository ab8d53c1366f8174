"""The chart as helm renders it, for every values file that ships.  test_chart.py HELM"""
import itertools
import json
import os
import subprocess
import sys
import unittest

import yaml

HELM = sys.argv.pop(1)
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
CHART = f"{ROOT}/charts/ashlar"
VALUES = sorted(f"{CHART}/ci/{name}" for name in os.listdir(f"{CHART}/ci"))
KINDS = ["metacontroller.k8s.io/v1alpha1/CompositeController", "monitoring.coreos.com/v1/PodMonitor",
         "keda.sh/v1alpha1/ScaledObject", "resource.k8s.io/v1/ResourceClaimTemplate",
         "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet"]


def helm(*arguments):
    return subprocess.run([HELM, *arguments], capture_output=True, text=True)


OURS = ("--api-versions", "ashlar.dev/v1alpha1/InferenceModel")  # once its definition is installed


def template(*arguments):
    result = helm("template", "r", CHART, "--namespace", "ashlar", *OURS, *arguments)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout


def objects(*arguments):
    return [o for o in yaml.safe_load_all(template(*arguments)) if o]


def pods(rendered):
    return [(o["metadata"]["name"], o["spec"]["template"]["spec"]) for o in rendered if o["kind"] == "Deployment"]


class Chart(unittest.TestCase):
    def test_lints(self):
        for values in VALUES:
            result = helm("lint", "--strict", CHART, "-f", values, "--set", "checks.enabled=false")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_renders_the_same_twice(self):
        for values in VALUES:
            self.assertEqual(template("-f", values), template("-f", values))

    def test_crd_is_the_one_of_the_manifests(self):
        with open(f"{CHART}/files/crd.yaml") as copy, open(f"{ROOT}/manifests/crd.yaml") as source:
            self.assertEqual(copy.read(), source.read())

    def test_containers_are_probed_sized_pinned_and_restricted(self):
        for values in VALUES:
            for name, pod in pods(objects("-f", values)):
                self.assertFalse(pod["enableServiceLinks"], name)
                self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
                for key in ("hostNetwork", "hostPID", "hostIPC"):
                    self.assertNotIn(key, pod)
                for container in pod["containers"]:
                    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                        self.assertEqual(len(container[probe].keys() & {"httpGet", "exec", "tcpSocket", "grpc"}), 1)
                    self.assertIn("requests", container["resources"])
                    self.assertFalse(container["image"].endswith(":latest") or ":" not in container["image"])
                    security = container["securityContext"]
                    self.assertTrue(security["readOnlyRootFilesystem"])
                    self.assertFalse(security["allowPrivilegeEscalation"])
                    self.assertEqual(security["capabilities"], {"drop": ["ALL"]})

    def test_roles_name_every_right(self):
        rendered = objects("-f", f"{CHART}/ci/operator-values.yaml")
        roles = [o for o in rendered if o["kind"] in ("ClusterRole", "Role")]
        self.assertTrue(roles)
        for role in roles:
            for rule in role["rules"]:
                for word in itertools.chain(rule["apiGroups"], rule["resources"], rule["verbs"]):
                    self.assertNotIn("*", word)
                self.assertNotIn("secrets", rule["resources"])

    def test_roles_cover_what_the_controller_makes(self):
        rendered = objects("-f", f"{CHART}/ci/operator-values.yaml", *itertools.chain(*(("--api-versions", k) for k in KINDS)))
        controller = next(o for o in rendered if o["kind"] == "CompositeController")
        role = next(o for o in rendered if o["kind"] == "ClusterRole")
        for child in controller["spec"]["childResources"]:
            group = child["apiVersion"].rpartition("/")[0]
            rights = [r for r in role["rules"] if group in r["apiGroups"] and child["resource"] in r["resources"]]
            self.assertTrue(any({"create", "patch", "delete"} <= set(r["verbs"]) for r in rights), child)

    def test_unknown_kinds_are_left_out_of_the_controller(self):
        def kinds(*arguments):
            rendered = objects("-f", f"{CHART}/ci/operator-values.yaml", *arguments)
            controller = next(o for o in rendered if o["kind"] == "CompositeController")
            return {c["resource"] for c in controller["spec"]["childResources"]}
        self.assertNotIn("scaledobjects", kinds())
        self.assertIn("scaledobjects", kinds("--api-versions", KINDS[2]))

    def test_zero_and_false_are_values(self):
        rendered = objects("-f", f"{CHART}/ci/zero-values.yaml")
        for o in rendered:
            if o["kind"] == "Deployment":
                self.assertEqual(o["spec"]["replicas"], 0)
        model = next(o for o in rendered if o["kind"] == "InferenceModel" and o["metadata"]["name"] == "demo")
        self.assertEqual(model["spec"]["replicas"], 0)
        self.assertIs(model["spec"]["suspend"], False)
        self.assertEqual(model["spec"]["drain"]["preStopSeconds"], 0)

    def test_replicas_are_left_to_the_autoscaler(self):
        rendered = objects("-f", f"{CHART}/ci/zero-values.yaml")
        model = next(o for o in rendered if o["kind"] == "InferenceModel" and o["metadata"]["name"] == "scaled")
        self.assertNotIn("replicas", model["spec"])

    def test_arguments_survive_odd_text(self):
        odd = 'registry/x:1 "$(HOME)": \'q\' #\nz'
        values = f"{CHART}/ci/operator-values.yaml"
        for _, pod in pods(objects("-f", values, "--set-literal", f"images.cpu={odd}")):
            for container in pod["containers"]:
                if container["name"] == "hooks":
                    self.assertIn(f"--image-cpu={odd}", container["args"])

    def test_the_hooks_listen_where_the_values_say(self):
        def arguments(*settings):
            rendered = objects("-f", f"{CHART}/ci/operator-values.yaml", *settings)
            (pod,) = [o["spec"]["template"]["spec"] for o in rendered if o["kind"] == "Deployment" and o["metadata"]["name"] == "r-hooks"]
            return pod["containers"][0]["args"]
        self.assertIn("--host=0.0.0.0", arguments())
        self.assertIn("--host=::", arguments("--set", "hooks.host=::"))

    def test_typos_in_values_are_refused(self):
        for setting, word in (("hook.replicas=1", "hook"), ("hooks.replica=1", "replica"), ("mode=operater", "mode"),
                              ("hooks.image=x:latest", "image"), ("hooks.host=", "host"), ("hooks.livenessProbe.exec=x", "livenessProbe")):
            result = helm("template", "r", CHART, "-f", VALUES[0], "--set", setting)
            self.assertNotEqual(result.returncode, 0, setting)
            self.assertIn(word, result.stderr)

    def test_a_missing_metacontroller_is_told_with_the_remedy(self):
        result = helm("template", "r", CHART)
        self.assertIn("set metacontroller.install=true", result.stderr)
        self.assertEqual(helm("template", "r", CHART, "--api-versions", KINDS[0]).returncode, 0)

    def test_models_before_their_definition_are_told_with_the_remedy(self):
        values = f"{CHART}/ci/operator-values.yaml"
        self.assertIn("install without models", helm("template", "r", CHART, "-f", values).stderr)
        self.assertEqual(helm("template", "r", CHART, "-f", values, *OURS).returncode, 0)

    def test_definitions_of_metacontroller_come_only_with_it(self):
        def definitions(*arguments):
            rendered = helm("template", "r", CHART, "--include-crds", "--set", "checks.enabled=false,crds.install=false", *arguments)
            return rendered.stdout.count("kind: CustomResourceDefinition")
        self.assertEqual(definitions(), 0)
        self.assertEqual(definitions("--set", "metacontroller.install=true"), 3)

    def test_the_webhook_comes_only_when_asked_for(self):
        for values in VALUES:
            asked = values.endswith("webhook-values.yaml")
            kinds = [o["kind"] for o in objects("-f", values)]
            self.assertEqual("ValidatingWebhookConfiguration" in kinds, asked, values)

    def test_the_webhook_calls_the_port_that_the_hooks_serve(self):
        rendered = {(o["kind"], o["metadata"]["name"]): o for o in objects(
            "-f", f"{CHART}/ci/webhook-values.yaml", "--set-literal", "webhook.caBundle=PEM")}
        (webhook,) = rendered["ValidatingWebhookConfiguration", "ashlar-inferencemodels"]["webhooks"]
        self.assertEqual(webhook["failurePolicy"], "Ignore")
        self.assertEqual(webhook["clientConfig"]["caBundle"], "UEVN")
        target = webhook["clientConfig"]["service"]
        (port,) = [p for p in rendered["Service", target["name"]]["spec"]["ports"] if p["port"] == target["port"]]
        pod = rendered["Deployment", "r-hooks"]["spec"]["template"]["spec"]
        (hooks,) = pod["containers"]
        self.assertIn({"name": port["targetPort"], "containerPort": 8443, "protocol": "TCP"}, hooks["ports"])
        (mount,) = hooks["volumeMounts"]
        self.assertIn(f"--tls-certificate={mount['mountPath']}/tls.crt", hooks["args"])
        self.assertIn(f"--tls-key={mount['mountPath']}/tls.key", hooks["args"])
        self.assertEqual(pod["volumes"], [{"name": mount["name"], "secret": {"secretName": "ashlar-hooks-tls"}}])
        rules = rendered["NetworkPolicy", "r-hooks"]["spec"]["ingress"]
        self.assertIn({"ports": [{"port": "admission", "protocol": "TCP"}]}, rules)

    def test_a_webhook_that_nobody_could_trust_is_told_with_the_remedy(self):
        asked = ("template", "r", CHART, "--set", "metacontroller.install=true,webhook.enabled=true")
        self.assertIn("webhook.secretName", helm(*asked).stderr)
        self.assertIn("webhook.caBundle", helm(*asked, "--set", "webhook.secretName=x").stderr)

    def test_the_manifests_are_the_charts(self):
        result = helm("template", "ashlar", CHART, "-n", "ashlar", "--set", "crds.install=false,checks.enabled=false")
        with open(f"{ROOT}/manifests/operator.yaml") as file:
            self.assertEqual(list(yaml.safe_load_all(file)), list(yaml.safe_load_all(result.stdout)))

    def test_every_value_is_in_the_schema(self):
        with open(f"{CHART}/values.schema.json") as file:
            schema = json.load(file)
        with open(f"{CHART}/values.yaml") as file:
            values = yaml.safe_load(file)

        def check(value, node, path):
            if isinstance(value, dict) and "properties" in node:
                self.assertFalse(node["additionalProperties"], path)
                for key, child in value.items():
                    self.assertIn(key, node["properties"], path)
                    check(child, node["properties"][key], f"{path}.{key}")
        check(values, schema, "values")


if __name__ == "__main__":
    unittest.main()
