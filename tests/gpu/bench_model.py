"""Whole-model figures on a GPU host: the rows E1 to E16 of docs/benchmarks.md, one JSON line each.

    python3 tests/gpu/bench_model.py BUNDLE OUT [--models 0.6b 8b] [--rows start decode prefill list http mixed prefix]

BUNDLE is what `make gpu-bundle` made, with libashlar_cuda.so put into BUNDLE/lib/ashlar. Models have random weights
(tests/bench/random_model.py, which needs torch) and are written to /dev/shm once.
"""

import argparse
import json
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parent / "bench"
MODELS = {"0.6b": "qwen3-0.6b", "8b": "llama-8b"}
PORT = 18500


def model_folder(name):
    folder = pathlib.Path("/dev/shm") / MODELS[name]
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, BENCH / "random_model.py", MODELS[name], folder], check=True, stdout=sys.stderr)
        (folder / "complete").touch()
    return folder


def spec_file(name, directory, prefix_cache):
    spec = {
        "apiVersion": "ashlar.dev/v1alpha1",
        "kind": "ModelSpec",
        "name": "m",
        "source": {"path": str(model_folder(name))},
        "contextLength": 70000 if name == "8b" else 40960,
        "kv": {"memory": "90%", "prefixCache": prefix_cache},
        "limits": {"sequences": 256, "batchTokens": 2048, "queuedTokens": 100000000, "queuedRequests": 4096},
        "server": {"host": "127.0.0.1", "port": PORT, "connections": 1024},
    }
    path = pathlib.Path(directory) / f"{name}.yaml"
    path.write_text(json.dumps(spec))
    return path


def nano_vllm_list(directory):
    """The request list of nano-vLLM's benchmark, drawn as it draws it; it checks itself."""
    draw = random.Random(0)
    prompts = [[draw.randint(0, 10000) for _ in range(draw.randint(100, 1024))] for _ in range(256)]
    tokens = [draw.randint(100, 1024) for _ in range(256)]
    if sum(tokens) != 133966:
        sys.exit(f"bench_model: the request list sums to {sum(tokens)} tokens, not 133966")
    path = pathlib.Path(directory) / "list.txt"
    path.write_text("".join(f"{len(p)} {t}\n" for p, t in zip(prompts, tokens)))
    return path


class Server:
    """`ashlar serve`, ready when entered; `seconds` from exec to Ready."""

    def __init__(self, bundle, spec, log):
        self.command = [str(bundle / "bin" / "ashlar"), "serve", "-f", str(spec)]
        self.log = log

    def __enter__(self):
        begin = time.monotonic()
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        while True:
            if self.process.poll() is not None:
                sys.exit(f"bench_model: {' '.join(self.command)} ended with {self.process.returncode}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=5)
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.005)
        self.seconds = time.monotonic() - begin
        return self

    def phases(self):
        """Seconds of each phase of the start, by the server's own metric."""
        page = urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=5).read().decode()
        found = re.findall(r'ashlar_startup_phase_seconds\{.*?phase="(\w+)".*?\} (\S+)', page)
        return {phase: round(float(seconds), 3) for phase, seconds in found}

    def status(self):
        return json.load(urllib.request.urlopen(f"http://127.0.0.1:{PORT}/status", timeout=5))

    def load(self, *scenarios):
        command = [sys.executable, BENCH / "http_load.py", "--port", str(PORT), "--model", "m", "--procs", "4", *scenarios]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=500)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def device_memory_mib():
    line = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], stdout=subprocess.PIPE, text=True
    ).stdout
    return int(line.split()[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--rows", nargs="+", default=["start", "decode", "prefill", "list", "http", "mixed", "prefix"])
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    def note(model, row):
        line = json.dumps({"model": model, **row})
        print(line, flush=True)
        with open(arguments.out / "model.jsonl", "a") as file:
            file.write(line + "\n")

    for name in arguments.models:
        with tempfile.TemporaryDirectory() as directory, open(arguments.out / f"{name}.log", "w") as log:
            scenarios = []
            if "decode" in arguments.rows:
                scenarios += [f"decode:{batch}:1024:256" for batch in (1, 8, 64, 256)]
                scenarios += ["decode:256:2048:256"] if name == "8b" else []
            if "prefill" in arguments.rows:
                scenarios += [f"prefill:{tokens}" for tokens in (128, 1024, 2048, 8192)]
            if "list" in arguments.rows and name == "0.6b":
                scenarios += [f"list:{nano_vllm_list(directory)}"]
            if scenarios:
                spec = spec_file(name, directory, False)
                command = [arguments.bundle / "bin" / "bench_engine", spec, *scenarios]
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
                for line in process.stdout:
                    note(name, json.loads(line))
                if process.wait() != 0:
                    note(name, {"error": f"bench_engine ended with {process.returncode}, see {name}.log"})
            if "start" in arguments.rows:
                spec = spec_file(name, directory, True)
                for _ in range(2):
                    with Server(arguments.bundle, spec, log) as server:
                        note(name, {"row": "start", "seconds": round(server.seconds, 3), "phases": server.phases()})
            if any(row in arguments.rows for row in ("http", "mixed", "prefix")):
                with Server(arguments.bundle, spec_file(name, directory, "prefix" in arguments.rows), log) as server:
                    server.load("closed:16:32:512:16")
                    scenarios = []
                    if "http" in arguments.rows:
                        scenarios += ["poisson:4:8:512:128", "poisson:16:8:512:128", "poisson:32:8:512:128"]
                        scenarios += ["closed:64:384:512:128", "closed:256:768:512:128"]
                    scenarios += ["mixed:32:512:65536"] if "mixed" in arguments.rows and name == "8b" else []
                    scenarios += ["prefix:8192:910:128"] if "prefix" in arguments.rows and name == "8b" else []
                    for row in server.load(*scenarios):
                        note(name, row)
                    note(name, {"row": "memory", "device_mib": device_memory_mib(), "memory": server.status().get("memory")})


if __name__ == "__main__":
    main()
