"""The admission webhook: kubectl apply is refused in the words of the condition, and nothing that must pass is."""
import json
import os
import subprocess
import unittest

import cluster
from case import ClusterTest, alone
from cluster import Refused, model, quick_demo

SERVICE = "ashlar-hooks.ashlar.svc"


def odd_block(name):
    """A block size that no row of the CPU takes."""
    return quick_demo(name, model={"source": {"builtin": "demo"}, "kv": {"memory": "64MiB", "blockSize": 24}})


def certificate():
    """A CA, and what it signed for the hooks' Service, in a Secret. The CA as PEM."""
    folder = f"{cluster.WORK}/webhook"
    os.makedirs(folder, exist_ok=True)

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(*new, "-x509", "-days", "1", "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.crt")
    openssl(*new, "-subj", "/CN=hooks", "-addext", f"subjectAltName=DNS:{SERVICE}", "-keyout", "tls.key", "-out", "tls.csr")
    openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1",
            "-copy_extensions", "copy", "-out", "tls.crt")
    return folder


class Webhook(ClusterTest):
    def enable(self):
        """The chart with a webhook, whose certificate a CA of this test has signed."""
        folder = certificate()
        self.c.kubectl("create", "secret", "tls", "hooks-tls", "-n", cluster.OPERATOR, f"--cert={folder}/tls.crt", f"--key={folder}/tls.key")
        self.addCleanup(self.c.kubectl, "delete", "secret", "hooks-tls", "-n", cluster.OPERATOR)
        self.addCleanup(self.c.install, "upgrade")
        self.c.install("upgrade", cluster.CHART, "--set", "webhook.enabled=true,webhook.secretName=hooks-tls",
                       "--set-file", f"webhook.caBundle={folder}/ca.crt")

        def refuses():
            try:
                self.c.create(odd_block("probe"), dry_run=True)
            except Refused as refused:
                return "denied the request" in refused.message
        self.c.wait("the webhook is asked", refuses)

    def kubectl_apply(self, manifest):
        return self.c.kubectl("apply", "-n", cluster.MODELS, "-f", "-", stdin=json.dumps(manifest), check=False)

    @alone
    def test_apply_is_refused_in_the_conditions_words(self):
        self.apply(odd_block("stored"))  # before there is a webhook
        said = self.c.wait_condition("stored", "Accepted", "False", "NoNodeCanServe")["message"]
        words = said[said.index("spec.model"):].split("\n")[0]
        self.enable()

        result = self.kubectl_apply(odd_block("refused"))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("denied the request", result.stderr)
        self.assertIn(words, result.stderr)
        self.assertIsNone(self.c.get("InferenceModel", "refused"))
        self.figures.append(result.stderr.strip())

        wrong = quick_demo("refused")
        wrong["spec"]["model"]["limits"] = {"sequences": 64, "batchTokens": 8}
        self.assertIn("a step of 8 tokens cannot hold 64 sequences", self.kubectl_apply(wrong).stderr)

        # Nodes may come after their models.
        gpu = model("early", {"accelerator": {"vendor": "amd"}, "model": {"source": {"builtin": "demo"}, "platform": "hip"}})
        self.c.create(gpu, dry_run=True)
        # What is stored can be scaled, labelled and mended, and not made worse.
        self.c.patch("InferenceModel", "stored", {"spec": {"replicas": 2, "suspend": True}})
        self.c.patch("InferenceModel", "stored", {"metadata": {"labels": {"a": "b"}}})
        with self.assertRaises(Refused):
            self.c.patch("InferenceModel", "stored", {"spec": {"model": {"numerics": "invariant"}}})
        self.c.patch("InferenceModel", "stored", {"spec": {"suspend": False, "replicas": 1, "model": {"kv": {"blockSize": None}}}})
        self.c.ready("stored")

        # Hooks that are down stop no change.
        self.c.patch("Deployment", "ashlar-hooks", {"spec": {"replicas": 0}}, cluster.OPERATOR)
        self.c.wait("no hooks", lambda: not self.c.list("Pod", cluster.OPERATOR, "app.kubernetes.io/name=ashlar-hooks"))
        self.c.create(odd_block("probe"), dry_run=True)
        self.c.patch("Deployment", "ashlar-hooks", {"spec": {"replicas": 2}}, cluster.OPERATOR)


class Bounds(ClusterTest):
    def test_apply_beyond_a_bound_is_refused_with_the_runtimes_bound(self):
        for change, words in (({"server": {"port": 70000}}, "spec.model.server.port: Invalid value: 70000: spec.model.server.port in body should be less than or equal to 65535"),
                              ({"limits": {"choices": 1025}}, "should be less than or equal to 1024"),
                              ({"kv": {"blockSize": 0}}, "should be greater than or equal to 1"),
                              ({"kv": {"blockSize": "sixteen"}}, "should match '^auto$'"),
                              ({"server": {"host": "h" * 254}}, "may not be more than 253 bytes")):
            manifest = quick_demo("bounded")
            for key, value in change.items():
                manifest["spec"]["model"].setdefault(key, {}).update(value)
            with self.subTest(change=change):
                result = self.c.kubectl("apply", "-n", cluster.MODELS, "--dry-run=server", "-f", "-", stdin=json.dumps(manifest), check=False)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(words, result.stderr.replace("Too long: ", ""))
        for size in ("auto", 1):
            self.c.create(quick_demo("bounded", model={"source": {"builtin": "demo"}, "kv": {"blockSize": size}}), dry_run=True)


if __name__ == "__main__":
    unittest.main()
