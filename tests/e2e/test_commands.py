"""The subcommands that answer and exit, as a user types them."""
import json
import os
import re
import subprocess
import tempfile
import unittest

from harness import ASHLAR, ROOT

DEMO = os.path.join(ROOT, "manifests", "samples", "demo.yaml")
DENSE = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192, "rope_theta": 500000.0,
         "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16"}


def ashlar(*words):
    return subprocess.run([ASHLAR, *words], capture_output=True, text=True, timeout=60)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def spec(self, name, **kv):
        lines = "".join(f"  {key}: {value}\n" for key, value in kv.items())
        return self.file(name, "apiVersion: ashlar.dev/v1alpha1\nkind: ModelSpec\nname: dense\nsource:\n  path: /models/dense\n"
                         f"  config: {json.dumps(DENSE)}\n" + ("kv:\n" + lines if kv else ""))

    def plan(self, name, spec, platform):
        result = ashlar("plan", "-f", spec, "--platform", platform, "-o", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.file(name, result.stdout)


class Plans(Folder):
    def test_a_model_is_planned_on_every_profile_in_one_table(self):
        result = ashlar("plan", "-f", self.spec("m.yaml"), "--sweep")
        self.assertEqual(result.returncode, 0, result.stderr)
        for profile in ("h100", "h200", "mi300x", "cpu-avx2"):
            self.assertIn(profile, result.stdout)
        self.assertIn("CUDA_", result.stdout)
        self.assertIn("HIP_", result.stdout)
        self.assertIn("CPU_PAGED", result.stdout)

    def test_diff_tells_a_contract_from_an_amount(self):
        before = self.plan("a.json", self.spec("a.yaml"), "h100")
        same = ashlar("plan", "diff", before, before)
        self.assertEqual((same.returncode, same.stdout), (0, "no difference\n"))
        larger = self.plan("b.json", self.spec("a.yaml"), "h200")
        amounts = ashlar("plan", "diff", before, larger)
        self.assertEqual(amounts.returncode, 0, amounts.stdout)
        self.assertIn("amount    memory.freeBytes", amounts.stdout)
        other = self.plan("c.json", self.spec("c.yaml", blockSize=128), "h100")
        contract = ashlar("plan", "diff", before, other)
        self.assertEqual(contract.returncode, 1, contract.stdout)
        self.assertIn("contract  kvGroups[full_attention].blockSize", contract.stdout)
        broken = ashlar("plan", "diff", before, self.file("d.json", "{}"))
        self.assertEqual(broken.returncode, 2)
        self.assertIn("no usable hash", broken.stderr)

    def test_two_pools_are_matched_or_told_what_to_set(self):
        spec = self.spec("a.yaml")
        other = self.plan("a.json", spec, "mi300x")
        rows = ashlar("plan", "-f", spec, "--platform", "h200", "--with", other)
        self.assertEqual(rows.returncode, 0, rows.stdout + rows.stderr)
        self.assertRegex(rows.stdout, "full_attention: CUDA_\\w+ here, HIP_\\w+ there")
        result = ashlar("plan", "-f", self.spec("b.yaml", blockSize=128), "--platform", "h200", "--with", other)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("blocks pass when both are planned with", result.stdout)
        same = ashlar("plan", "-f", spec, "--platform", "mi300x", "--with", other)
        self.assertEqual(same.returncode, 0, same.stdout)
        narrow = self.plan("n.json", self.spec("n.yaml", dtype="float16"), "mi300x")
        never = ashlar("plan", "-f", spec, "--platform", "h200", "--with", narrow)
        self.assertEqual(never.returncode, 4, never.stdout)
        self.assertIn("dtype", never.stdout)

    def test_the_reference_catalogue_is_labelled_wherever_it_shows(self):
        spec = self.spec("m.yaml")
        for output in ("text", "yaml", "json"):
            result = ashlar("plan", "-f", spec, "--platform", "h200", "--catalogue", "vllm", "-o", output)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("nothing of it is carried out", result.stdout)
            self.assertIn("FLASH_ATTN", result.stdout)
        plain = json.loads(ashlar("plan", "-f", spec, "--platform", "mi300x", "--catalogue", "vllm", "-o", "json").stdout)
        self.assertEqual(plain["attention"][0]["backend"], "ROCM_ATTN")
        connected = ashlar("plan", "-f", spec, "--platform", "mi300x", "--catalogue", "vllm", "--assume", "connector=on", "-o", "json")
        self.assertNotEqual(json.loads(connected.stdout)["attention"][0]["backend"], "ROCM_ATTN")
        self.assertEqual(ashlar("plan", "-f", spec, "--assume", "aiter=on").returncode, 2)
        wrong = ashlar("plan", "-f", spec, "--platform", "h200", "--catalogue", "vllm", "--assume", "aitre=on")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean aiter?", wrong.stderr)

    def test_a_block_size_is_refused_in_one_text_wherever_it_is_stated(self):  # RC-4
        spec = self.spec("m.yaml", blockSize=8)
        said = ashlar("plan", "-f", spec, "--platform", "h200").stderr.split("kv.blockSize: ")[1].strip()
        row = re.fullmatch(r"8 is not usable: (\w+) needs a multiple of 16; use 16", said).group(1)
        config = self.file("config.json", json.dumps(DENSE))
        manifest = self.file("im.yaml", "apiVersion: ashlar.dev/v1alpha1\nkind: InferenceModel\nmetadata: {name: m}\nspec:\n  model:\n"
                             f"    source: {{path: /models/dense, config: {json.dumps(DENSE)}}}\n    kv: {{blockSize: 8}}\n")
        with open(spec) as file:
            forced = self.file("forced.yaml", file.read() + f"backends: {{default: {{use: {row}}}}}\n")
        for file in (manifest, forced):
            self.assertIn(said, ashlar("plan", "-f", file, "--platform", "h200").stderr, file)
        self.assertIn(said, ashlar("plan", "-f", spec, "--sweep").stdout)
        words = ("vllm", "serve", "/m", "--block-size", "8")
        self.assertIn(said, ashlar("import", "--config", config, "--platform", "h200", "--", *words).stdout)

    def test_the_catalogue_is_swept_and_labelled_too(self):
        swept = ashlar("plan", "-f", self.spec("m.yaml"), "--sweep", "--catalogue", "vllm")
        self.assertEqual(swept.returncode, 0, swept.stderr)
        self.assertIn("nothing of it is carried out", swept.stdout)
        for words in ("h100", "xpu", "FLASH_ATTN", "ROCM_ATTN", "CPU_ATTN"):
            self.assertIn(words, swept.stdout)

    def test_what_would_be_ignored_is_refused(self):
        spec = self.spec("m.yaml")
        other = self.plan("a.json", spec, "h200")
        for words in (("--sweep", "--platform", "h200"), ("--sweep", "-o", "json"), ("--with", other, "-o", "json"),
                      ("--emit-config", "--full")):
            self.assertEqual(ashlar("plan", "-f", spec, *words).returncode, 64, words)
        self.assertEqual(ashlar("plan", "-f", spec, "--platform", "h200", "--catalogue", "vllm", "--with", other).returncode, 2)

    def test_the_text_is_one_screen_and_has_a_longer_form(self):
        spec = self.spec("m.yaml")
        screen = ashlar("plan", "-f", spec, "--platform", "h200").stdout
        self.assertLess(len(screen.splitlines()), 50, screen)
        self.assertIn("CPU_PAGED, CPU_WINDOW", screen)
        full = ashlar("plan", "-f", spec, "--platform", "h200", "--full").stdout
        self.assertIn("other device: CPU_PAGED runs on cpu, this plan on cuda", full)

    def test_an_xpu_is_the_catalogues_alone(self):
        spec = self.spec("m.yaml")
        ours = ashlar("plan", "-f", spec, "--platform", "xpu")
        self.assertEqual(ours.returncode, 2)
        self.assertIn("add --catalogue vllm", ours.stderr)
        self.assertIn("FLASH_ATTN", ashlar("plan", "-f", spec, "--platform", "xpu", "--catalogue", "vllm").stdout)

    def test_the_file_is_asked_for(self):
        self.assertEqual(ashlar("plan").returncode, 64)

    def test_the_page_of_backends_is_what_the_binary_holds(self):
        with open(os.path.join(ROOT, "docs", "backends.md")) as file:
            self.assertEqual(ashlar("backends").stdout, file.read(), "write it anew: ashlar backends > docs/backends.md")


class Validations(Folder):
    def test_a_misspelled_builtin_model_is_refused_as_plan_refuses_it(self):
        spec = self.file("m.yaml", "source: {builtin: dmeo}\n")
        checked, planned = ashlar("validate", "-f", spec), ashlar("plan", "-f", spec)
        self.assertEqual((checked.returncode, checked.stdout), (2, ""))
        self.assertIn("builtin:dmeo: is no model of this binary", checked.stderr)
        self.assertEqual(checked.stderr, planned.stderr)
        # A plan may be made from the geometry alone; what is to be served needs the model.
        given = self.file("given.yaml", "source: {builtin: dmeo, config: %s}\n" % json.dumps(DENSE))
        self.assertEqual(ashlar("plan", "-f", given, "--platform", "h200").returncode, 0)
        self.assertIn("builtin:dmeo: is no model of this binary", ashlar("validate", "-f", given).stderr)
        self.assertEqual(ashlar("validate", "-f", DEMO).returncode, 0)


class Imports(Folder):
    def test_a_command_line_becomes_a_spec_that_validates(self):
        result = ashlar("import", "--", "vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "32k", "--enforce-eager")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("# mapped    --max-model-len 32k -> contextLength", result.stdout)
        checked = ashlar("validate", "-f", self.file("m.yaml", result.stdout))
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_what_is_lost_is_said_and_seen_in_the_exit_status(self):
        result = ashlar("import", "--", "vllm", "serve", "/m", "--enable-lora")
        self.assertEqual(result.returncode, 2)
        self.assertIn("# refused   --enable-lora: LoRA adapters are not served", result.stdout)
        self.assertIn("source:\n  path: \"/m\"", result.stdout)

    def test_what_vllm_would_choose_stands_beside(self):
        config = self.file("config.json", json.dumps(DENSE))
        result = ashlar("import", "--config", config, "--platform", "h200", "--", "vllm", "serve", "/m")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("# compare   full_attention: vLLM would choose FLASH_ATTN, you get CUDA_", result.stdout)
        self.assertIn("# compare   block size: vLLM would choose 16, you get 16", result.stdout)
        self.assertEqual(ashlar("validate", "-f", self.file("m.yaml", result.stdout)).returncode, 0)
        self.assertEqual(ashlar("import", "--config", config + "x", "--", "vllm", "serve", "/m").returncode, 2)

    def test_a_pod(self):
        pod = self.file("pod.yaml", "kind: Pod\nspec:\n  containers:\n  - name: main\n    image: vllm/vllm-openai\n    args: [--model, /m, --port, '9000']\n")
        result = ashlar("import", "-f", pod)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("port: 9000", result.stdout)
        self.assertEqual(ashlar("import", "-f", pod, "--container", "other").returncode, 2)
        self.assertEqual(ashlar("import", "-f", os.path.join(self.folder.name, "none.yaml")).returncode, 2)


if __name__ == "__main__":
    unittest.main()
