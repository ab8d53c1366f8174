"""Whole-model figures on a GPU host, each beside its goal, vLLM's figure and the floor of the rates in the same run.

    python3 tests/gpu/bench_model.py BUNDLE OUT [--models 0.6b 8b 8b-fp8] [--parts ...] [--seconds 560]

BUNDLE is what `make gpu-bundle` made, with libashlar_cuda.so put into BUNDLE/lib/ashlar. Models have random weights
(tests/bench/random_model.py, which needs torch) and are written to /dev/shm once; `demo` is the one in the binary and
runs on any platform. A part that fails or takes too long is said and left, and none begins that would end after
--seconds. Results: OUT/model.jsonl and OUT/table.txt; exits with the number of parts that did not end well.
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
import threading
import time
import urllib.error
import urllib.request

import model_goals

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parent / "bench"
FOLDERS = {"0.6b": "qwen3-0.6b", "8b": "llama-8b", "8b-fp8": "llama-8b"}
MODELS = [*FOLDERS, "demo"]
# Parts and the most seconds of each.
PARTS = {"decode": 120, "prefill": 60, "list": 60, "start": 60, "http": 120, "mixed": 60, "prefix": 60}
PORT = 18500


def model_source(name):
    if name == "demo":
        return {"builtin": "demo"}
    folder = pathlib.Path("/dev/shm") / FOLDERS[name]
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, BENCH / "random_model.py", FOLDERS[name], folder], check=True, stdout=sys.stderr)
        (folder / "complete").touch()
    return {"path": str(folder)}


def spec_file(name, directory, prefix_cache):
    spec = {
        "apiVersion": "ashlar.dev/v1alpha1",
        "kind": "ModelSpec",
        "name": "m",
        "source": model_source(name),
        "kv": {"memory": "90%", "prefixCache": prefix_cache},
        "limits": {"sequences": 256, "batchTokens": 2048, "queuedTokens": 100000000, "queuedRequests": 4096},
        "server": {"host": "127.0.0.1", "port": PORT, "connections": 1024},
    }
    if name == "demo":
        spec["kv"]["memory"] = "256MiB"
        spec["limits"]["sequences"] = 16
    else:
        spec["contextLength"] = 40960 if name == "0.6b" else 70000
    if name == "8b-fp8":
        spec["quantization"] = "fp8"
        spec["kv"]["dtype"] = "float8_e4m3"
    path = pathlib.Path(directory) / f"{name}.yaml"
    path.write_text(json.dumps(spec))
    return path


def nano_vllm_list(directory):
    """The request list of nano-vLLM's benchmark, drawn as it draws it; it checks itself."""
    draw = random.Random(0)
    prompts = [[draw.randint(0, 10000) for _ in range(draw.randint(100, 1024))] for _ in range(256)]
    tokens = [draw.randint(100, 1024) for _ in range(256)]
    if sum(tokens) != 133966:
        raise RuntimeError(f"the request list sums to {sum(tokens)} tokens, not 133966")
    path = pathlib.Path(directory) / "list.txt"
    path.write_text("".join(f"{len(p)} {t}\n" for p, t in zip(prompts, tokens)))
    return path


def scenarios(part, name, directory):
    """Of bench_engine or http_load.py."""
    small = name == "demo"
    if part == "decode":
        if small:
            return ["decode:1:32:16", "decode:4:32:16"]
        rows = [f"decode:{batch}:1024:256" for batch in (1, 8, 64, 256)]
        return rows + (["decode:256:2048:256"] if name == "8b" else [])
    if part == "prefill":
        return [f"prefill:{tokens}" for tokens in ((32, 64) if small else (128, 1024, 2048, 8192))]
    if part == "list":
        return [f"list:{nano_vllm_list(directory)}"] if name == "0.6b" else []
    if part == "http":
        if small:
            return ["poisson:16:2:32:16", "closed:4:16:32:16"]
        if name != "8b":
            return []
        loads = [f"poisson:{rate}:8:512:128" for rate in (4, 16, 32)]
        return loads + ["closed:64:384:512:128", "closed:256:768:512:128"]
    if part == "mixed":
        return ["mixed:32:512:65536"] if name == "8b" else []
    if part == "prefix":
        return ["prefix:8192:910:128"] if name == "8b" else []
    return []


def output_lines(command, log, limit):
    """The JSON lines of a command, as they come; an error when it fails or takes longer than `limit` seconds."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    timer = threading.Timer(limit, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            yield json.loads(line)
        if process.wait() != 0:
            raise RuntimeError(f"{pathlib.Path(str(command[0])).name} ended with {process.returncode}")
    finally:
        timer.cancel()
        process.kill()
        process.wait()


class Server:
    """`ashlar serve`, ready when entered; `seconds` from exec to Ready."""

    vocab = 10000  # of prompts

    def __init__(self, bundle, spec, log, limit):
        self.command = [str(bundle / "bin" / "ashlar"), "serve", "-f", str(spec)]
        self.log, self.limit = log, limit

    def __enter__(self):
        begin = time.monotonic()
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        while time.monotonic() - begin < self.limit:
            if self.process.poll() is not None:
                raise RuntimeError(f"ashlar serve ended with {self.process.returncode}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=5)
                self.seconds = time.monotonic() - begin
                return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.005)
        self.__exit__()
        raise RuntimeError(f"not ready after {self.limit:.0f} s")

    def page(self, path):
        return urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=5).read().decode()

    def await_warm(self):
        begin = time.monotonic()
        while not json.loads(self.page("/status"))["engine"]["warm"]:
            if time.monotonic() - begin > 30:
                raise RuntimeError("not warm after 30 s")
            time.sleep(0.02)

    def phases(self):
        """Seconds of each phase of the start, by the server's own metric."""
        found = re.findall(r'ashlar_startup_phase_seconds\{.*?phase="(\w+)".*?\} (\S+)', self.page("/metrics"))
        return {phase: round(float(seconds), 3) for phase, seconds in found}

    def memory_bytes(self):
        """Weights and the cache as it was really made."""
        status = json.loads(self.page("/status"))
        planned = sum(group["plannedBlocks"] for group in status["engine"]["groups"])
        made = sum(group["blocks"] for group in status["engine"]["groups"])
        memory = status["plan"]["memory"]
        return memory["weightBytes"] + memory["kvBytes"] * made / planned

    def load(self, wanted, limit):
        options = ["--port", str(PORT), "--model", "m", "--procs", "4", "--vocab", str(self.vocab)]
        return output_lines([sys.executable, BENCH / "http_load.py", *options, *wanted], self.log, limit)

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def device_mib():
    """In use on the first device; nothing where there is none."""
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        return int(subprocess.run(query, stdout=subprocess.PIPE, text=True, timeout=20).stdout.split()[0])
    except (OSError, IndexError, ValueError, subprocess.TimeoutExpired):
        return None


def measure_rates():
    """Bytes and operations a second of a large copy and a large product."""
    import torch

    def seconds(call):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        times = []
        for _ in range(8):
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times.append(begin.elapsed_time(end) / 1e3)
        return sorted(times[1:])[3]

    source = torch.empty(1 << 30, dtype=torch.bfloat16, device="cuda").normal_()
    target = torch.empty_like(source)
    copied = 2 * source.numel() * 2 / seconds(lambda: target.copy_(source))
    a = source[: 8192 * 8192].view(8192, 8192)
    multiplied = 2 * 8192**3 / seconds(lambda: torch.matmul(a, a))
    return {"bytes": copied, "flops": multiplied}


class Run:
    def __init__(self, arguments):
        self.bundle, self.out = arguments.bundle, arguments.out
        self.end = time.monotonic() + arguments.seconds
        self.rates = {}
        self.failed = 0

    def say(self, text):
        print(text, flush=True)
        with open(self.out / "table.txt", "a") as file:
            file.write(text + "\n")

    def note(self, model, result):
        with open(self.out / "model.jsonl", "a") as file:
            file.write(json.dumps({"model": model, **result}) + "\n")
        if "error" in result or result.get("errors"):
            self.failed += 1
            self.say(f"FAILED {model} {result.get('row')}: {json.dumps(result)}")
        else:
            for line in model_goals.lines(model, result, self.rates):
                self.say(line)

    def part(self, name, model, limit, body):
        """Runs body(seconds it may take); what goes wrong is said."""
        limit = min(limit, self.end - time.monotonic())
        begin = time.monotonic()
        try:
            if limit < 10:
                raise RuntimeError("no time is left")
            body(limit)
        except Exception as problem:  # one part's failure is no other's
            self.failed += 1
            self.say(f"FAILED {model} {name} after {time.monotonic() - begin:.0f} s: {problem}")

    def model(self, name, parts, log):
        self.part("weights", name, 120, lambda _: model_source(name))
        with tempfile.TemporaryDirectory() as directory:
            for part in parts:
                wanted = scenarios(part, name, directory)
                if part == "start":
                    body = lambda limit: self.start(name, directory, log, limit)
                elif not wanted:
                    continue
                elif part in ("decode", "prefill", "list"):
                    body = lambda limit, wanted=wanted: self.engine(name, wanted, directory, log, limit)
                else:
                    body = lambda limit, wanted=wanted, part=part: self.http(name, wanted, part == "prefix", directory, log, limit)
                self.part(part, name, PARTS[part], body)

    def engine(self, name, wanted, directory, log, limit):
        """A scenario that fails ends bench_engine: the ones after it get another."""
        end = time.monotonic() + limit
        spec = spec_file(name, directory, wanted[0].startswith("decode"))
        problems = []
        while wanted:
            command = [self.bundle / "bin" / "bench_engine", spec, *wanted]
            begun = False
            try:
                for result in output_lines(command, log, max(1, end - time.monotonic())):
                    self.note(name, result)
                    if begun:
                        wanted = wanted[1:]
                    begun = True  # the first line is of the start
            except RuntimeError as problem:
                problems.append(f"{wanted[0]}: {problem}")
                if not begun:
                    break
                wanted = wanted[1:]
        if problems:
            raise RuntimeError("; ".join(problems))

    def start(self, name, directory, log, limit):
        spec = spec_file(name, directory, True)
        before = device_mib()
        for _ in range(2):
            with Server(self.bundle, spec, log, limit / 2) as server:
                self.note(name, {"row": "start", "seconds": round(server.seconds, 3), "phases": server.phases()})
                server.await_warm()  # a trial of kernels holds memory while it runs
                used = device_mib()
                if used is not None:
                    own = (used - before) - server.memory_bytes() / (1 << 20)
                    self.note(name, {"row": "memory", "device_mib": used, "beside_mib": round(own)})

    def http(self, name, wanted, prefix_cache, directory, log, limit):
        end = time.monotonic() + limit
        with Server(self.bundle, spec_file(name, directory, prefix_cache), log, limit / 2) as server:
            server.await_warm()
            if name == "demo":
                server.vocab = 200
            list(server.load(["closed:4:8:32:16" if name == "demo" else "closed:16:32:512:16"], 30))
            for result in server.load(wanted, max(1, end - time.monotonic())):
                self.note(name, result)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--models", nargs="+", default=list(FOLDERS), choices=MODELS)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--seconds", type=float, default=560)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    run = Run(arguments)

    def rates(_):
        run.rates = measure_rates()
        run.say(f"copy {run.rates['bytes'] / 1e9:.0f} GB/s both ways, product {run.rates['flops'] / 1e12:.0f} TFLOP/s")

    if arguments.models != ["demo"]:
        run.part("rates", "device", 60, rates)
    for name in arguments.models:
        with open(arguments.out / f"{name}.log", "a") as log:
            run.model(name, arguments.parts, log)
    sys.exit(min(run.failed, 100))


if __name__ == "__main__":
    main()
