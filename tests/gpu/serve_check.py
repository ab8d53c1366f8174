"""Serves one model on the reference platform and on another and compares greedy answers.

    python3 tests/gpu/serve_check.py BUNDLE [--platform cuda] [--model demo | --model PATH]

BUNDLE is what tests/gpu/bundle.sh made, with the platform's plugin put into BUNDLE/lib/ashlar. Only the standard
library is needed. Prints each answer that differs, and tokens a second of one stream; exits 1 when any differs.
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PROMPTS = ["2 + 3 =", "The cat", "Once upon a time", "{\"name\":", "What is the capital of France?"]


def post(port, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    return json.load(urllib.request.urlopen(request, timeout=300))


class Server:
    """One `ashlar serve`, ready when entered."""

    def __init__(self, bundle, platform, model, port):
        source = {"builtin": model} if model == "demo" else {"path": model}
        spec = {
            "apiVersion": "ashlar.dev/v1alpha1",
            "kind": "ModelSpec",
            "name": "checked",
            "source": source,
            "platform": platform,
        }
        self.file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        json.dump(spec, self.file)
        self.file.flush()
        self.command = [str(bundle / "bin" / "ashlar"), "serve", "-f", self.file.name, "--port", str(port)]
        self.port = port

    def __enter__(self):
        begin = time.monotonic()
        self.process = subprocess.Popen(self.command)
        while time.monotonic() - begin < 300:
            if self.process.poll() is not None:
                sys.exit(f"serve_check: {' '.join(self.command)} ended with {self.process.returncode}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5)
                self.start_seconds = time.monotonic() - begin
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.02)
        sys.exit("serve_check: not ready after 300 s")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)  # no lame duck
        self.process.wait(30)

    def answers(self, tokens):
        body = {"model": "checked", "max_tokens": tokens, "temperature": 0}
        return [post(self.port, {**body, "prompt": prompt})["choices"][0]["text"] for prompt in PROMPTS]

    def tokens_per_second(self, tokens):
        body = {"model": "checked", "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "prompt": PROMPTS[0]}
        begin = time.monotonic()
        made = post(self.port, body)["usage"]["completion_tokens"]
        return made / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("--platform", default="cuda")
    parser.add_argument("--model", default="demo")
    arguments = parser.parse_args()
    results = {}
    for port, platform in enumerate(["reference", arguments.platform], 18400):
        with Server(arguments.bundle, platform, arguments.model, port) as server:
            results[platform] = server.answers(32)
            server.tokens_per_second(64)
            print(
                f"{platform}: ready after {server.start_seconds:.2f} s, "
                f"{server.tokens_per_second(200):.0f} tokens/s of one stream over HTTP"
            )
    different = 0
    for prompt, want, got in zip(PROMPTS, results["reference"], results[arguments.platform]):
        if want != got:
            different += 1
            print(f"differs: {prompt!r}: {got!r} instead of {want!r}")
    print(f"{len(PROMPTS) - different} of {len(PROMPTS)} answers are equal")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
