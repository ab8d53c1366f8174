"""What bench_model.py measures beside its goals: each row's goal and peer on an H200, and the floor that bytes and
operations set, from the rates measured in the same run."""

LAYERS = {"0.6b": (28, 16), "8b": (32, 32), "8b-fp8": (32, 32)}  # layers, query heads; both have 8 KV heads of 128
PARAMETERS = {"0.6b": 0.596e9, "8b": 7.504e9, "8b-fp8": 7.504e9}  # that a token meets
WEIGHT_BYTES = {"0.6b": 1.19e9, "8b": 15.0e9, "8b-fp8": 8.03e9}  # that a step reads

# Milliseconds: the row of the benchmark, the goal, vLLM 0.26 on such a device.
DECODE = {
    ("0.6b", 1, 1024): ("E1", 0.61, 1.68),
    ("0.6b", 8, 1024): ("", None, 2.53),
    ("0.6b", 64, 1024): ("", None, 3.82),
    ("0.6b", 256, 1024): ("", None, 10.34),
    ("8b", 1, 1024): ("E2", 3.9, 4.96),
    ("8b", 8, 1024): ("E3", 4.4, 5.31),
    ("8b", 64, 1024): ("E3", 6.6, 7.64),
    ("8b", 256, 1024): ("E3", 14.8, 17.8),
    ("8b", 256, 2048): ("E3", 23.0, 25.6),
    ("8b-fp8", 1, 1024): ("E4", 2.2, 3.62),
    ("8b-fp8", 8, 1024): ("E4", 2.4, 3.84),
    ("8b-fp8", 64, 1024): ("E4", 3.9, 5.79),
    ("8b-fp8", 256, 1024): ("E4", 8.2, 13.8),
}
PREFILL = {
    ("0.6b", 128): (1.5, 12.8),
    ("0.6b", 1024): (2.5, 18.3),
    ("0.6b", 2048): (4.5, 22.1),
    ("0.6b", 8192): (27, 33.8),
    ("8b", 128): (5, 11.2),
    ("8b", 1024): (23, 28.3),
    ("8b", 2048): (47, 54.3),
    ("8b", 8192): (200, 215),
}
START = {"0.6b": 1.0, "8b": 3.0}


def decode_floor(model, batch, context, rates):
    layers, _ = LAYERS[model]
    eight = model.endswith("fp8")
    kv = 2 * layers * 8 * 128 * (1 if eight else 2)
    bytes_read = WEIGHT_BYTES[model] + batch * context * kv
    operations = 2 * batch * PARAMETERS[model] / (2 if eight else 1)
    return 1e3 * max(bytes_read / rates["bytes"], operations / rates["flops"])


def prefill_floor(model, tokens, rates):
    layers, heads = LAYERS[model]
    operations = 2 * PARAMETERS[model] * tokens + 2 * layers * heads * 128 * tokens * tokens
    return 1e3 * max(operations / rates["flops"], WEIGHT_BYTES[model] / rates["bytes"])


def row(name, what, value, unit, goal=None, peer=None, floor=None, least=False):
    """One line of the table. `least`: more is better."""
    words = [f"{name:3} {what:44.44} {value:10.4g} {unit}"]
    if goal is not None:
        met = value >= goal if least else value <= goal
        words.append(f"goal {goal:g}: {'met' if met else 'MISSED'}")
    if peer is not None:
        words.append(f"vLLM {peer:g}: {value / peer if least else peer / value:.2f} times")
    if floor is not None:
        words.append(f"floor {floor:.4g}: {100 * (value / floor if least else floor / value):.0f} %")
    return ", ".join(words)


def lines(model, result, rates):
    """The lines that a result of bench_engine or http_load.py gives."""
    kind = result.get("row")
    if kind == "decode":
        batch, prompt, step = result["batch"], result["prompt"], result["step_ms"]
        name, goal, peer = DECODE.get((model, batch, prompt), ("", None, None))
        floor = None
        if model in LAYERS and rates:
            floor = decode_floor(model, batch, prompt + result["tokens"] / 2, rates)
        return [row(name, f"{model} decode, batch {batch}, prompt {prompt}", step, "ms", goal, peer, floor)]
    if kind == "prefill":
        goal, peer = PREFILL.get((model, result["tokens"]), (None, None))
        floor = prefill_floor(model, result["tokens"], rates) if model in LAYERS and rates else None
        return [row("E7", f"{model} prompt of {result['tokens']}", result["ttft_ms"], "ms", goal, peer, floor)]
    if kind == "list":
        known = model == "0.6b"
        goal, peer, floor = (30000, 23630, 36327) if known else (None, None, None)
        return [row("E5", f"{model} list of {result['requests']}", result["tok_s"], "tok/s", goal, peer, floor, True)]
    if kind == "start":
        phases = ", ".join(f"{phase} {seconds}" for phase, seconds in result["phases"].items())
        return [row("E16", f"{model} exec to Ready", result["seconds"], "s", START.get(model)), f"    {phases}"]
    if kind == "memory":
        return [row("E17", f"{model} memory beside weights and KV", result["beside_mib"], "MiB", 850)]
    if kind == "E12":
        first, gap = (28, 15) if model == "8b" else (None, None)
        return [
            row("E12", f"{model} {result['load']}, TTFT p50", result["ttft_ms_p50"], "ms", first),
            row("E12", f"{model} {result['load']}, ITL p99", result["itl_ms_p99"], "ms", gap),
        ]
    if kind == "serve":
        goal, peer = {"closed, 64 at a time": (50, 39.9), "closed, 256 at a time": (60, 50.2)}.get(
            result["load"] if model == "8b" else "", (None, None)
        )
        return [row("E12", f"{model} {result['load']}", result["req_s"], "req/s", goal, peer, None, True)]
    if kind == "E10":
        before = result["itl_ms_p50_before"]
        alone = result["long_ttft_alone_ms"]
        return [
            row("E10", "streams' rate beside a long prompt", result["stream_rate_during_over_before"], "of it", 0.5, None, None, True),
            row("E10", f"ITL p99 over the median before, {before} ms", result["itl_ms_p99_during"] / before, "times", 2),
            row("E10", f"long prompt's TTFT over alone, {alone} ms", result["long_ttft_ms"] / alone, "times", 1.3),
        ]
    if kind == "E11":
        hit, tail = result["ttft_ms_p50_hit_alone"], result["ttft_ms_p50_tail_only_alone"]
        return [
            row("E11", "TTFT on a hit", hit, "ms", 30, 50),
            row("E11", f"TTFT on a hit over the tail alone, {tail} ms", hit / tail, "times", 1.15),
            row("E11", "64 clients on one prefix", result["hit_closed64"]["req_s"], "req/s", 40, 30.1, None, True),
        ]
    return []
