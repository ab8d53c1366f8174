"""Specs that cannot work: told where a user looks, in the runtime's words, with nothing half created."""
import copy
import json
import os
import unittest

import cluster
from case import ClusterTest, lane
from cluster import H200, Refused, fake_node, model, quick_demo

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
         "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "torch_dtype": "bfloat16"}


class CannotWork(ClusterTest):
    def refused(self, name, spec, reason, *words):
        """Accepted is false with this reason and these words; Ready says the same; there is no child."""
        self.apply(model(name, spec))
        condition = self.c.wait_condition(name, "Accepted", "False", reason)
        for word in words:
            self.assertIn(word, condition["message"])
        ready = self.c.wait_condition(name, "Ready", "False", reason)
        self.assertEqual(ready["message"], condition["message"])
        self.assertEqual(self.c.children(name), set())
        self.figures.append(f"{reason}: {condition['message']:.120}")

    def heals(self, name, change):
        self.c.patch("InferenceModel", name, {"spec": change})
        self.c.ready(name)
        self.assertEqual(self.c.condition(name, "Accepted")["status"], "True")

    def test_a_block_size_that_no_row_takes(self):
        spec = quick_demo("x")["spec"]
        spec["model"]["kv"]["blockSize"] = 24
        self.refused("odd-block", spec, "NoNodeCanServe", "24", "CPU_PAGED")
        self.heals("odd-block", {"model": {"kv": {"blockSize": 32}}})

    @lane("nodes")
    def test_a_gpu_that_is_not_there(self):
        self.addCleanup(self.delete, "gpu-0", "Node")  # after its pods
        spec = quick_demo("x")["spec"]
        spec["accelerator"] = {"vendor": "nvidia"}
        spec["model"]["platform"] = "cuda"
        spec["pod"] = {"tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]}
        self.refused("no-gpu", spec, "NoNodeCanServe", "no node offers 1 nvidia.com/gpu")
        self.c.create(fake_node("gpu-0", {"nvidia.com/gpu": "1"}, H200))
        self.c.wait_condition("no-gpu", "Accepted", "True")
        self.c.wait("a pod runs there", lambda: [p for p in self.c.pods("no-gpu") if p["spec"].get("nodeName") == "gpu-0"])

    def test_an_architecture_that_is_not_known(self):
        """What is stated of the geometry is wrong; the files, once they are asked instead, are those of a real model."""
        self.c.claim("real", os.path.dirname(cluster.SMOLLM2))
        config = {**LLAMA, "architectures": ["MambaForNothing"], "model_type": "nothing"}
        spec = quick_demo("x", source={"uri": "pvc://real"})["spec"]
        spec["model"].update(source={"path": f"/models/{os.path.basename(cluster.SMOLLM2)}", "config": config}, contextLength=1024)
        self.refused("strange", spec, "SpecInvalid", '"nothing" is not supported', "llama")
        self.heals("strange", {"model": {"source": {"config": None}}})

    def test_a_name_that_a_shell_would_read(self):
        """HE-08."""
        spec = quick_demo("x")["spec"]
        spec["model"]["name"] = 'a "b" $(x)\n'
        self.refused("odd-name", spec, "SpecInvalid", "spec.model.name", "letters, digits")

    def test_weights_that_are_missing(self):
        folder = f"{cluster.WORK}/weights"
        os.makedirs(folder)
        self.c.claim("empty", folder)
        spec = {"accelerator": {"vendor": "cpu"}, "source": {"uri": "pvc://empty"}, "drain": {"preStopSeconds": 0},
                "model": {"source": {"path": "/models/missing.gguf"}, "server": {"lameDuckSeconds": 0}}}
        self.apply(model("unweighted", spec))
        condition = self.c.wait_condition("unweighted", "SourceReady", "False", "SourceInvalid")
        self.assertIn("/models/missing.gguf", condition["message"])
        self.assertEqual(self.c.condition("unweighted")["reason"], "SourceInvalid")
        self.assertEqual(self.c.condition("unweighted", "Accepted")["reason"], "GeometryUnknown")
        [pod] = self.c.pods("unweighted")
        self.assertEqual(pod["status"]["containerStatuses"][0]["restartCount"], 0)
        self.figures.append(f"SourceInvalid: {condition['message']:.120}")
        self.c.patch("InferenceModel", "unweighted", {"spec": {"source": None, "model": {"source": {"path": None, "builtin": "demo"}}}})
        self.c.ready("unweighted")
        failure = self.c.get("InferenceModel", "unweighted")["status"]["lastFailure"]
        self.assertEqual(failure["check"], "source")

    def test_a_key_that_there_is_not(self):
        spec = quick_demo("x")["spec"]
        spec["model"]["kvv"] = {}
        manifest = model("misspelt", spec)
        result = self.c.kubectl("apply", "-n", cluster.MODELS, "-f", "-", stdin=json.dumps(manifest), check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn('unknown field "spec.model.kvv"', result.stderr)
        self.assertIsNone(self.c.get("InferenceModel", "misspelt"))

    def test_a_refused_change_leaves_what_serves(self):
        self.apply(quick_demo("kept"))
        self.c.ready("kept")
        before = {p["metadata"]["uid"] for p in self.c.pods("kept")}
        self.c.patch("InferenceModel", "kept", {"spec": {"model": {"kv": {"blockSize": 24}}}})
        self.c.wait_condition("kept", "Degraded", "True", "SpecRefused")
        self.assertEqual(self.c.condition("kept")["reason"], "NoNodeCanServe")
        self.assertEqual({p["metadata"]["uid"] for p in self.c.pods("kept")}, before)
        self.answers("kept")
        self.heals("kept", {"model": {"kv": {"blockSize": None}}})
        self.assertEqual({p["metadata"]["uid"] for p in self.c.pods("kept")}, before)


DEMO = {"source": {"builtin": "demo"}}
FILE = {"source": {"path": "/models/m.gguf"}}
GPU = {"vendor": "nvidia"}
REFUSALS = [  # (name, spec, words of the API server's message)
    ("m", {"model": DEMO, "source": {"uri": "pvc://x"}}, "a built-in model needs no source"),
    ("m", {"model": {"source": {"path": "/weights/m.gguf"}}, "source": {"uri": "pvc://x"}}, "mounted at /models"),
    ("m", {"model": FILE}, "add spec.source"),
    ("m", {"model": {**DEMO, "platform": "cuda"}, "accelerator": {"vendor": "amd"}}, "nvidia is cuda, amd is hip"),
    ("m", {"model": {**DEMO, "parallel": {"tensor": 2}}, "accelerator": {**GPU, "count": 1}}, "tensor x pipeline"),
    ("m", {"model": DEMO, "accelerator": {"vendor": "cpu", "resourceName": "nvidia.com/gpu"}}, "asks for no device"),
    ("m", {"model": DEMO, "accelerator": {"vendor": "auto"}}, "vendor auto needs"),
    ("m", {"model": DEMO, "accelerator": {"vendor": "nvida"}}, "Unsupported value"),
    ("m", {"model": DEMO, "scaling": {"min": 0, "max": 2, "provider": "hpa"}}, "needs provider keda"),
    ("m", {"model": FILE, "source": {"uri": "hf://a/b", "cache": {"pvc": {"size": "1Gi", "accessModes": ["ReadWriteOnce"]}}},
           "replicas": 2}, "cannot share a ReadWriteOnce volume"),
    ("m", {"model": DEMO, "drain": {"timeoutSeconds": 10}}, "would be killed while the model drains"),
    ("m", {"model": DEMO, "accelerator": {**GPU, "minMemoryGiB": 40}, "pod": {"affinity": {}}}, "written as node affinity"),
    ("m", {"model": DEMO, "replicas": -1}, "spec.replicas"),
    ("m", {"model": {**DEMO, "kv": {"dtype": "float8"}}}, "Unsupported value"),
    ("m", {"model": {**DEMO, "contextLength": "8k"}}, "must be of type integer"),
    ("m", {"model": DEMO, "pod": {"livenessProbe": {"exec": {"command": ["true"]}}}}, 'unknown field "spec.pod.livenessProbe"'),
    ("m" * 51, {"model": DEMO}, "at most 50"),
    ("1m", {"model": DEMO}, "a letter first"),
]


class Rules(ClusterTest):
    def test_each_rule_refuses_with_its_remedy(self):
        for name, spec, words in REFUSALS:
            with self.subTest(words=words):
                with self.assertRaises(Refused) as refusal:
                    self.c.create(model(name, spec), dry_run=True)
                self.assertIn(words, refusal.exception.message)

    def test_what_is_refused_alone_is_taken_when_mended(self):
        """So that no rule refuses everything."""
        for spec in ({"model": DEMO}, {"model": FILE, "source": {"uri": "pvc://x"}},
                     {"model": {**DEMO, "platform": "cuda", "parallel": {"tensor": 2}}, "accelerator": {**GPU, "count": 2}},
                     {"model": DEMO, "accelerator": {"vendor": "auto", "resourceName": "nvidia.com/gpu"}},
                     {"model": DEMO, "scaling": {"min": 0, "max": 2, "provider": "keda"}},
                     {"model": DEMO, "drain": {"timeoutSeconds": 60}}):
            with self.subTest(spec=spec):
                self.c.create(model("m", copy.deepcopy(spec)), dry_run=True)


if __name__ == "__main__":
    unittest.main()
