"""SmolLM2-135M-Instruct from its GGUF against the numpy oracle in float32 (make_smollm2_golden.py)."""
import json
import math
import os
import unittest

from harness import ROOT, SMOLLM2, Server, rows_of

GOLDEN = os.path.join(ROOT, "tests/e2e/smollm2_golden.json")
SPEC = f"name: smollm2\nsource: {{path: {SMOLLM2}}}\ncontextLength: 1024\n"


def greedy(server, prompt, tokens):
    """Ids and log-probabilities; the first stop cannot come early."""
    status, body = server.post("/v1/completions", {"model": "smollm2", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
                                                   "logprobs": 0, "return_token_ids": True}, timeout=300)
    assert status == 200, body
    return body["choices"][0]["token_ids"]


def forced(server, prompt, ids):
    """Per generated position: {id: log-probability} of the best twenty, given the oracle's own ids before it."""
    status, body = server.post("/v1/completions", {"model": "smollm2", "prompt": prompt + ids, "max_tokens": 1, "temperature": 0,
                                                   "prompt_logprobs": 20}, timeout=300)
    assert status == 200, body
    entries = body["choices"][0]["prompt_logprobs"]
    return [{int(i): value["logprob"] for i, value in entries[len(prompt) + p].items()} for p in range(len(ids))]


@unittest.skipUnless(SMOLLM2, "SMOLLM2 names no GGUF")
class SmolLM2(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(GOLDEN) as file:
            cls.golden = json.load(file)

    def test_reference_gives_the_oracles_ids(self):
        with Server(SPEC + "platform: reference\nkv: {dtype: float32}\n") as server:
            self.assertEqual(set(rows_of(server.status()).values()), {"REFERENCE"})
            compared = 0
            for case in self.golden["cases"]:
                ids = greedy(server, case["prompt"], self.golden["tokens"])
                for position, (ours, theirs, margin) in enumerate(zip(ids, case["ids"], case["margins"])):
                    if ours != theirs:
                        self.assertLessEqual(margin, 1e-3, (case["text"], position, ours, theirs))
                        break  # past a permitted flip the texts are different ones
                    compared += 1
            print(f"reference: {compared} of {len(self.golden['cases']) * self.golden['tokens']} greedy ids equal the oracle's")

    def test_cpu_plugin_stays_within_its_measured_error(self):
        with Server(SPEC) as server:
            print(f"exec to Ready, SmolLM2: {server.ready_seconds:.3f} s")
            self.assertEqual(set(rows_of(server.status()).values()), {"CPU_PAGED"})
            error, divergence, positions, flips, loose = 0.0, 0.0, 0, 0, []
            for case in self.golden["cases"]:
                for best, margin, ours in zip(case["best"], case["margins"], forced(server, case["prompt"], case["ids"])):
                    common = [(p, ours[i]) for i, p in best if i in ours]
                    error = max(error, max(abs(p - q) for p, q in common))
                    divergence += sum(math.exp(p) * (p - q) for p, q in common)
                    positions += 1
                    if max(ours, key=ours.get) != best[0][0]:
                        flips += 1
                        loose.append(margin)
            print(f"cpu: largest log-probability error {error:.4f}, mean KL {divergence / positions:.2e}, {flips} of {positions} best ids differ, "
                  f"largest margin there {max(loose, default=0):.4f}")
            self.assertTrue(all(margin < 2 * error for margin in loose), loose)
            self.assertLess(divergence / positions, 0.01)

    def test_chat_prompts_are_rendered_and_tokenised_as_transformers_does(self):
        with Server(SPEC) as server:
            for case in self.golden["cases"]:
                if case["question"] is None:
                    continue
                status, body = server.post("/v1/chat/completions", {"model": "smollm2", "max_tokens": 1, "return_token_ids": True,
                                                                    "messages": [{"role": "user", "content": case["question"]}]})
                self.assertEqual(status, 200, body)
                self.assertEqual(body["prompt_token_ids"], case["prompt"], case["question"])


if __name__ == "__main__":
    unittest.main()
