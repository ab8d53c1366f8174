"""Whole models on the CPU beside llama.cpp in the same run, in alternating pairs.

    python3 bench_model.py ASHLAR LLAMA_BENCH MODEL.gguf [--threads 1,2] [--pairs 7] [--prefill 256] [--decode 64]

Ours is measured through HTTP, sampling included; theirs by llama-bench. Both greedy without a stop, f16 or bf16 KV, warm files. Prints
one row a workload: the median of each side, and the median, least and largest ratio of the pairs.
"""
import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
os.environ.setdefault("ASHLAR", sys.argv[1] if len(sys.argv) > 1 else "")
import harness  # noqa: E402


def generate(port, prompt, tokens):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = json.dumps({"model": "bench", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True})
    start = time.perf_counter()
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    seconds = time.perf_counter() - start
    connection.close()
    assert response.status == 200, text
    return seconds


def ours(port, rng, prefill, decode):
    """(prefill tok/s, decode tok/s)"""
    ids = lambda n: [rng.randrange(3, 1000) for _ in range(n)]
    fill = generate(port, ids(prefill), 1)
    short = ids(8)
    return prefill / fill, decode / (generate(port, short, decode + 1) - generate(port, short, 1))


def theirs(bench, model, threads, prefill, decode):
    result = subprocess.run([bench, "-m", model, "-t", str(threads), "-p", str(prefill), "-n", str(decode), "-r", "1", "-o", "json"],
                            capture_output=True, text=True, check=True)
    rows = json.loads(result.stdout)
    rate = lambda key: next(row["avg_ts"] for row in rows if row[key] > 0)
    return rate("n_prompt"), rate("n_gen")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ashlar"), parser.add_argument("llama_bench"), parser.add_argument("model")
    parser.add_argument("--threads", default="1,2"), parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--prefill", type=int, default=256), parser.add_argument("--decode", type=int, default=64)
    args = parser.parse_args()
    rng = random.Random(1)
    print(f"{os.path.basename(args.model)}, prefill {args.prefill}, decode {args.decode}, {args.pairs} pairs, tok/s")
    for threads in map(int, args.threads.split(",")):
        spec = f"name: bench\nsource: {{path: {os.path.abspath(args.model)}}}\ncpu: {{threads: {threads}}}\ncontextLength: 2048\nkv: {{prefixCache: false}}\n"
        with harness.Server(spec) as server:
            ours(server.port, rng, 32, 4)
            pairs = [(ours(server.port, rng, args.prefill, args.decode), theirs(args.llama_bench, args.model, threads, args.prefill, args.decode))
                     for _ in range(args.pairs)]
            for i, work in enumerate(("prefill", "decode")):
                a, b = [p[0][i] for p in pairs], [p[1][i] for p in pairs]
                ratios = [x / y for x, y in zip(a, b)]
                print(f"{threads} thread{'s' if threads > 1 else ' '} {work:8} ours {statistics.median(a):8.1f}  llama.cpp {statistics.median(b):8.1f}  "
                      f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)
            print(f"RSS {server.resident_bytes() >> 20} MiB, exec to Ready {server.ready_seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
