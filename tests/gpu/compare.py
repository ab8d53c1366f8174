"""Figures of tests/gpu/bench.cc beside their goals, one line each.

    python3 tests/gpu/compare.py FOLDER      FOLDER holds the bench-*.txt of build_and_check.sh

Goals are absolute on an H200. Those of attention are shares of what FlashAttention-3 and FlashInfer reach there.
"""

import pathlib
import re
import sys

# The better of the two with a 16-bit cache: microseconds by batch and context.
DECODE = {
    (1, 1024): 9.4, (1, 4096): 13.8, (1, 32768): 42.0,
    (8, 1024): 17.6, (8, 4096): 41.6, (8, 32768): 247,
    (64, 1024): 72.6, (64, 4096): 247, (64, 32768): 1864,
    (256, 1024): 258, (256, 4096): 951, (256, 32768): 7491,
}  # fmt: skip
DECODE_F8 = {(64, 1024): 3300, (64, 4096): 4000, (64, 32768): 4000} | {(256, c): 4000 for c in (1024, 4096, 32768)}
PREFILL = {
    "CUDA_HOPPER": {2048: 0.90 * 452, 8192: 0.97 * 609, 32768: 0.97 * 617},
    "CUDA_PAGED": {2048: 212, 8192: 326, 32768: 356},
}
# Milliseconds of a whole step; here without the engine.
STEP = {
    ("0.6B bf16", 1): 0.61,
    ("8B bf16", 1): 3.9, ("8B bf16", 8): 4.4, ("8B bf16", 64): 6.6, ("8B bf16", 256): 14.8,
    ("8B fp8", 1): 2.2, ("8B fp8", 8): 2.4, ("8B fp8", 64): 3.9, ("8B fp8", 256): 8.2,
}  # fmt: skip
READ_SHARE = 90  # percent of what reading alone reaches, products of up to 16 tokens
SAMPLE = 60  # microseconds at batch 256
PREPARE = 3.5  # microseconds of one token


def at_most(value, goal, unit):
    return f"{value:10.2f} {unit}, at most {goal:.4g}: {'met' if value <= goal else f'{value / goal:.2f} times'}"


def at_least(value, goal, unit):
    return f"{value:10.1f} {unit}, at least {goal:.4g}: {'met' if value >= goal else f'{value / goal:.2f} of it'}"


def compare(line, row):
    """What a line of the benchmark says beside its goal, or nothing where there is none."""
    if found := re.match(r"decode (bf16|f8) .*, B (\d+) ctx (\d+) +([\d.]+) us.*? (\d+) GB/s", line):
        cell = int(found[2]), int(found[3])
        share = 1.15 if cell[0] <= 8 and cell[1] <= 4096 else 0.97
        if found[1] == "bf16":
            return at_most(float(found[4]), DECODE[cell] / share, "us")
        return at_least(float(found[5]), DECODE_F8[cell], "GB/s") if cell in DECODE_F8 else None
    if found := re.match(r"prefill bf16 32/8 d128 .*, (\d+) .* ([\d.]+) TFLOP/s", line):
        goal = PREFILL.get(row, {}).get(int(found[1]))
        return at_least(float(found[2]), goal, "TFLOP/s") if goal else None
    if found := re.match(r"matmul \[.*\] x m (1|2|4|8|16) .* (\d+) % of reading", line):
        return at_least(float(found[2]), READ_SHARE, "% of reading")
    if found := re.match(r"step (.*) B (\d+) ctx \d+: ([\d.]+) us", line):
        goal = STEP.get((found[1], int(found[2])))
        return at_most(float(found[3]) / 1e3, goal, "ms") if goal else None
    if found := re.match(r"sample B 256 (?:top|min).*?([\d.]+) us", line):
        return at_most(float(found[1]), SAMPLE, "us")
    if found := re.match(r"qkv_prepare .*, 1 tokens +([\d.]+) us", line):
        return at_most(float(found[1]), PREPARE, "us")
    return None


def main():
    for file in sorted(pathlib.Path(sys.argv[1]).glob("bench-*.txt")):
        row = file.stem.removeprefix("bench-prefill-")
        for line in file.read_text().splitlines():
            if beside := compare(line, row):
                print(f"{re.split(r' {3,}|: ', line)[0]:58.58} {beside}")
            elif line.startswith(("ceiling", "floor", "step")):
                print(line)


if __name__ == "__main__":
    main()
