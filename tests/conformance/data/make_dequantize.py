"""Writes dequantize.bin: random bytes of every GGUF weight type and the floats that the PyPI package
gguf (0.19) reads from them. Run: python make_dequantize.py (needs numpy and gguf).

Per type: uint32 type (the number of ashlar_dtype), uint32 blocks, the blocks, their float32 values.
"""

import pathlib

import gguf
import numpy as np

# ashlar_dtype, gguf type, blocks, bytes at which a float16 stands in a block
TYPES = [
    (0, "F32", 64, []),
    (1, "F16", 512, [0]),
    (2, "BF16", 512, []),
    (16, "Q8_0", 48, [0]),
    (17, "Q4_0", 48, [0]),
    (18, "Q4_1", 48, [0, 2]),
    (19, "Q5_0", 48, [0]),
    (20, "Q5_1", 48, [0, 2]),
    (21, "Q4_K", 12, [0, 2]),
    (22, "Q5_K", 12, [0, 2]),
    (23, "Q6_K", 12, [208]),
]


def random_blocks(rng, count, size, halves):
    """Random bytes; each float16 is finite, of any magnitude, subnormal ones included."""
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in halves:
        bits = rng.integers(0, 0x7C00, count, dtype=np.uint16)
        bits |= rng.integers(0, 2, count, dtype=np.uint16) << 15
        blocks[:, at : at + 2] = bits.astype("<u2").view(np.uint8).reshape(count, 2)
    return blocks


def main():
    rng = np.random.default_rng(20240601)
    out = bytearray()
    for number, name, count, halves in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = random_blocks(rng, count, size, halves)
        if name in ("F32", "BF16"):  # any bits but infinities and NaNs
            exponent = blocks[:, -1] & 0x7F == 0x7F
            blocks[exponent, -1] ^= 0x40
        values = gguf.quants.dequantize(blocks.reshape(1, -1) if name != "F32" else blocks.view("<f4"), kind)
        values = np.asarray(values, dtype="<f4").reshape(-1)
        assert values.size == count * elements and np.isfinite(values).all(), name
        out += np.array([number, count], dtype="<u4").tobytes() + blocks.tobytes() + values.tobytes()
    pathlib.Path(__file__).with_name("dequantize.bin").write_bytes(bytes(out))


if __name__ == "__main__":
    main()
