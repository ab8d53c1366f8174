"""Steps of the engine by the kernels in them, from what kernel_times.c noted.

    python3 tests/gpu/kernel_times.py TIMES.tsv [--skip 0.5] [--list]

A step ends with the sampling of its rows. For each number of tokens in a step: how many steps, milliseconds, and of them what
no kernel ran and what each kind took. A kernel that begins while the one before still runs counts from its own begin, so kinds
may add up to more than the step. --skip leaves out that share of the steps, the first; --list prints every step.
"""

import argparse
import collections

# The first that is part of a kernel's name.
KINDS = {
    "LayersKernel": "layers",
    "DecodeKernel": "decode",
    "AttentionKernel": "prefill",
    "TileKernel": "prefill",
    "CombineKernel": "prefill",
    "Norm": "norm",
    "Quantize": "quantize",
    "Gated": "gated",
    "RowKernel": "sample",
    "GroupKernel": "sample",
    "Embed": "embed",
    "Eights": "prepare",
    "nvjet": "product",
    "cublas": "product",
    "cutlass": "product",
    "MatmulKernel": "product",
    "SkinnyKernel": "product",
}


def kind_of(name):
    return next((kind for part, kind in KINDS.items() if part in name), "other")


def read_steps(path):
    kernels = []
    with open(path) as file:
        for line in file:
            begin, end, blocks, _, name = line.rstrip("\n").split("\t")
            kernels.append((int(begin), int(end), int(blocks), name))
    kernels.sort()
    steps, kinds = [], collections.Counter()
    step_begin = last_end = kernels[0][0] if kernels else 0
    tokens = idle = 0
    for begin, end, blocks, name in kernels:
        idle += max(0, begin - last_end)
        last_end = max(last_end, end)
        kinds[kind_of(name)] += end - begin
        if "Embed" in name:
            tokens = blocks
        if "RowKernel" in name:
            steps.append((tokens, last_end - step_begin, idle, kinds))
            step_begin, idle, kinds = last_end, 0, collections.Counter()
    return steps


def line_of(tokens, steps):
    count = len(steps) * 1e6
    kinds = sum((step[3] for step in steps), collections.Counter())
    parts = "  ".join(f"{kind} {time / count:.2f}" for kind, time in kinds.most_common())
    time, idle = (sum(step[i] for step in steps) / count for i in (1, 2))
    return f"{tokens:6d} tokens, {len(steps):5d} steps: {time:8.3f} ms, idle {idle:.3f}  {parts}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times")
    parser.add_argument("--skip", type=float, default=0.5)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    steps = read_steps(arguments.times)
    steps = steps[int(len(steps) * arguments.skip) :]
    if not steps:
        raise SystemExit(f"{arguments.times}: no step in it: was it written by an engine that samples on the device?")
    if arguments.list:
        for step in steps:
            print(line_of(step[0], [step]))
        return
    by_tokens = collections.defaultdict(list)
    for step in steps:
        by_tokens[step[0]].append(step)
    for tokens in sorted(by_tokens):
        print(line_of(tokens, by_tokens[tokens]))


if __name__ == "__main__":
    main()
