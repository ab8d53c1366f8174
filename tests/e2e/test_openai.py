"""The official OpenAI client for Python, unmodified, against a running server.

    python tests/e2e/test_openai.py --url http://127.0.0.1:8000 --model demo [--key KEY]
        [--rows CPU_PAGED,CPU_WINDOW] [--layout LBHNC]

--rows and --layout are what the caller believes to be running; /status must agree.
"""

import argparse
import json
import re
import sys
import threading
import unittest
import urllib.request
import uuid

import openai

OPTIONS = None


class Client(openai.OpenAI):
    """Unmodified, but for counting what it really sends."""

    sent = 0

    def _prepare_request(self, request):
        self.sent += 1


def client(strict=True, **options):
    """`strict`: an answer that lacks a key, or has one of another type, raises."""
    return Client(base_url=OPTIONS.url + "/v1", api_key=OPTIONS.key or "none",
                  _strict_response_validation=strict, **options)


def fresh():
    """Fields that keep two equal requests on equal paths: no prefix of one helps the other."""
    return {"cache_salt": uuid.uuid4().hex}


def get(path):
    with urllib.request.urlopen(OPTIONS.url + path) as answer:
        return answer.read().decode()


class Selection(unittest.TestCase):
    def test_status_shows_the_rows_that_run(self):
        status = json.loads(get("/status"))
        self.assertTrue(status["ready"])
        metrics = get("/metrics")
        info = [line for line in metrics.splitlines()
                if line.startswith("ashlar_attention_backend_info{")]
        rows = {re.search(r'backend="([^"]*)"', line).group(1) for line in info}
        layouts = {re.search(r'layout="([^"]*)"', line).group(1) for line in info}
        plan = json.dumps(status["plan"])
        for word in rows | layouts:
            self.assertIn(f'"{word}"', plan)
        if OPTIONS.rows:
            self.assertEqual(rows, set(OPTIONS.rows.split(",")))
        if OPTIONS.layout:
            self.assertEqual(layouts, {OPTIONS.layout})


class Models(unittest.TestCase):
    def test_list_and_retrieve(self):
        models = client().models.list()
        self.assertIn(OPTIONS.model, [model.id for model in models])
        self.assertEqual(client().models.retrieve(OPTIONS.model).id, OPTIONS.model)

    def test_unknown_model(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            client().models.retrieve("no-such-model")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.NotFoundError):
            client().completions.create(model="no-such-model", prompt="a")


class Completions(unittest.TestCase):
    def create(self, **fields):
        fields.setdefault("prompt", "Once upon a time")
        fields.setdefault("temperature", 0)
        fields.setdefault("extra_body", fresh())
        # The client's types know neither a chunk without finish_reason nor the null that stands for
        # the first token of an echo; OpenAI's own answers would not pass.
        strict = not (fields.get("stream") or fields.get("echo"))
        return client(strict).completions.create(model=OPTIONS.model, **fields)

    def test_plain_and_stream_agree(self):
        plain = self.create(max_tokens=24)
        stream = list(self.create(max_tokens=24, stream=True))
        self.assertEqual("".join(chunk.choices[0].text for chunk in stream), plain.choices[0].text)
        self.assertEqual(stream[-1].choices[0].finish_reason, plain.choices[0].finish_reason)
        for chunk in stream[:-1]:
            self.assertIsNone(chunk.choices[0].finish_reason)
        usage = plain.usage
        self.assertEqual(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
        self.assertLessEqual(usage.completion_tokens, 24)

    def test_max_tokens_ends_with_length(self):
        answer = self.create(max_tokens=3, extra_body={"ignore_eos": True, **fresh()})
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 3)

    def test_stop_string_is_cut_and_never_streamed(self):
        whole = self.create(max_tokens=32, extra_body={"ignore_eos": True, **fresh()})
        text = whole.choices[0].text
        self.assertGreater(len(text), 8)
        stop = text[len(text) // 2:len(text) // 2 + 3]
        expected = text[:text.index(stop)]
        cut = self.create(max_tokens=32, stop=[stop], extra_body={"ignore_eos": True, **fresh()})
        self.assertEqual(cut.choices[0].text, expected)
        self.assertEqual(cut.choices[0].finish_reason, "stop")
        stream = self.create(max_tokens=32, stop=stop, stream=True,
                             extra_body={"ignore_eos": True, **fresh()})
        self.assertEqual("".join(chunk.choices[0].text for chunk in stream), expected)

    def test_logprobs(self):
        answer = self.create(max_tokens=8, logprobs=3, extra_body={"ignore_eos": True, **fresh()})
        logprobs = answer.choices[0].logprobs
        for values in (logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs,
                       logprobs.text_offset):
            self.assertEqual(len(values), 8)
        for value, top in zip(logprobs.token_logprobs, logprobs.top_logprobs):
            self.assertLessEqual(value, 0)
            self.assertEqual(len(top), 3)
            self.assertAlmostEqual(max(top.values()), value, places=3)  # greedy takes the best

    def test_echo_with_logprobs(self):
        answer = self.create(prompt="abc abc", max_tokens=1, echo=True, logprobs=1)
        self.assertTrue(answer.choices[0].text.startswith("abc abc"))
        logprobs = answer.choices[0].logprobs
        self.assertIsNone(logprobs.token_logprobs[0])
        self.assertGreaterEqual(len(logprobs.tokens), answer.usage.prompt_tokens)
        self.assertTrue(answer.choices[0].text.startswith("".join(logprobs.tokens)[:7]))
        self.assertEqual(logprobs.text_offset[1], len(logprobs.tokens[0]))
        self.assertTrue(all(value <= 0 for value in logprobs.token_logprobs[1:]))

    def test_n_and_prompts_are_in_order(self):
        answer = self.create(prompt=["a", "b"], n=2, max_tokens=2, temperature=1, seed=1)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])

    def test_token_ids(self):
        answer = self.create(prompt=[[5, 6, 7], [8, 9]], max_tokens=2)
        self.assertEqual(len(answer.choices), 2)
        self.assertEqual(answer.usage.prompt_tokens, 5)

    def test_seed_repeats(self):
        texts = {self.create(max_tokens=12, temperature=1, seed=7).choices[0].text
                 for _ in range(3)}
        self.assertEqual(len(texts), 1)


class Chat(unittest.TestCase):
    def create(self, **fields):
        fields.setdefault("messages", [{"role": "user", "content": "Hello!"}])
        fields.setdefault("temperature", 0)
        fields.setdefault("extra_body", fresh())
        return client().chat.completions.create(model=OPTIONS.model, **fields)

    def test_plain_and_stream_agree(self):
        plain = self.create(max_completion_tokens=24)
        message = plain.choices[0].message
        self.assertEqual(message.role, "assistant")
        self.assertIsNone(message.refusal)
        stream = list(self.create(max_completion_tokens=24, stream=True,
                                  stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        self.assertEqual(text, message.content)
        self.assertEqual(stream[0].choices[0].delta.role, "assistant")
        self.assertEqual(stream[-1].choices, [])
        self.assertEqual(stream[-1].usage.completion_tokens, plain.usage.completion_tokens)
        self.assertTrue(all(chunk.usage is None for chunk in stream[:-1]))
        self.assertEqual([c.choices[0].finish_reason for c in stream[:-1]][-1],
                         plain.choices[0].finish_reason)

    def test_the_stream_helper_of_the_client(self):
        with client().chat.completions.stream(
                model=OPTIONS.model, messages=[{"role": "user", "content": "Hello!"}],
                temperature=0, seed=1, stop=" ") as stream:
            for _ in stream:
                pass
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].finish_reason, "stop")

    def test_logprob_bytes_are_the_answer(self):
        answer = self.create(max_tokens=12, logprobs=True, top_logprobs=2)
        content = answer.choices[0].logprobs.content
        self.assertEqual(len(content), answer.usage.completion_tokens)
        joined = b"".join(bytes(entry.bytes) for entry in content)
        self.assertEqual(joined.decode(errors="replace"), answer.choices[0].message.content)
        self.assertTrue(all(len(entry.top_logprobs) == 2 for entry in content))

    def test_text_parts_and_history(self):
        answer = self.create(max_tokens=4, messages=[
            {"role": "user", "content": [{"type": "text", "text": "Hello!"}]},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "Again?"}])
        self.assertTrue(answer.choices[0].finish_reason)

    def test_several_answers(self):
        answer = self.create(n=3, max_tokens=4, temperature=1)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])


class Errors(unittest.TestCase):
    def refused(self, **fields):
        with self.assertRaises(openai.BadRequestError) as caught:
            client().completions.create(model=OPTIONS.model, prompt="a", **fields)
        return caught.exception

    def test_bad_fields_name_themselves(self):
        error = self.refused(temperature=9)
        self.assertEqual((error.param, error.code), ("temperature", "invalid_value"))
        self.assertEqual(self.refused(extra_body={"no_such_field": 1}).code, "unknown_parameter")
        self.assertEqual(self.refused(suffix="x").code, "unsupported_parameter")

    def test_context_overflow_has_its_code(self):
        self.assertEqual(self.refused(max_tokens=10_000_000).code, "context_length_exceeded")

    def test_what_cannot_succeed_is_sent_once(self):
        counting = client()
        with self.assertRaises(openai.BadRequestError):
            counting.completions.create(model=OPTIONS.model, prompt="a", n=99)
        self.assertEqual(counting.sent, 1)

    @unittest.skipUnless("--key" in sys.argv, "the server has no key")
    def test_wrong_key(self):
        wrong = openai.OpenAI(base_url=OPTIONS.url + "/v1", api_key="wrong")
        with self.assertRaises(openai.AuthenticationError):
            wrong.models.list()

    def test_overload_is_429_and_the_client_retries_it(self):
        """Each request is 1,024 sequences; together they are more than any queue here holds."""
        answers, refusals = [], []

        def flood():
            try:
                answers.append(client(max_retries=0, timeout=300).completions.create(
                    model=OPTIONS.model, prompt=["a b c d"] * 64, n=16, max_tokens=8))
            except openai.RateLimitError as error:
                refusals.append(error)

        threads = [threading.Thread(target=flood) for _ in range(6)]
        for thread in threads:
            thread.start()
        patient = client(timeout=300, max_retries=60)
        answer = patient.completions.create(model=OPTIONS.model, prompt="a", max_tokens=1)
        for thread in threads:
            thread.join()
        self.assertEqual(answer.usage.completion_tokens, 1)
        self.assertTrue(refusals, "nothing was refused: the queue took six floods")
        self.assertEqual(refusals[0].code, "queue_full")
        self.assertIn("retry-after-ms", refusals[0].response.headers)

    def test_the_next_request_works(self):
        self.assertTrue(client().completions.create(model=OPTIONS.model, prompt="a", max_tokens=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--key", default="")
    parser.add_argument("--rows", default="")
    parser.add_argument("--layout", default="")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
