#!/usr/bin/env python3
"""Writes a GGUF of a known shape with random weights, for speed comparisons.

    make_gguf.py OUT.gguf [--shape qwen3-0.6b] [--type q8_0] [--seed 0]
                 [--vocabulary no] [--layers N]

Weights are normal with deviation 0.02, drawn per tensor from the seed and the tensor's name, so every
type of one shape quantises the same numbers. Norms are ones. Matrices have the given type; norms are
float32; the embedding, tied to the head, has the type of the matrices. The vocabulary is byte-level
BPE: every byte, then pairs and triples of printable ASCII, so that a server can load the file and
any text can be encoded. Prints the file's SHA-256. Needs numpy and the PyPI package gguf.
"""
import argparse
import hashlib
import zlib

import gguf
import numpy as np

SHAPES = {
    "qwen3-0.6b": dict(arch="qwen3", layers=28, hidden=1024, ffn=3072, heads=16, kv_heads=8,
                       head_dim=128, vocab=151936, context=40960, theta=1e6, eps=1e-6),
    "smollm2-135m": dict(arch="llama", layers=30, hidden=576, ffn=1536, heads=9, kv_heads=3,
                         head_dim=64, vocab=49152, context=8192, theta=1e5, eps=1e-5),
    "tiny": dict(arch="qwen3", layers=2, hidden=256, ffn=512, heads=4, kv_heads=2, head_dim=64,
                 vocab=1024, context=2048, theta=1e6, eps=1e-6),
}
# gguf-py quantises these; the K types need llama-quantize.
TYPES = {name.lower(): getattr(gguf.GGMLQuantizationType, name)
         for name in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")}
FILE_TYPES = {name: getattr(gguf.LlamaFileType, label) for name, label in {
    "f32": "ALL_F32", "f16": "MOSTLY_F16", "bf16": "MOSTLY_BF16", "q8_0": "MOSTLY_Q8_0",
    "q4_0": "MOSTLY_Q4_0", "q4_1": "MOSTLY_Q4_1", "q5_0": "MOSTLY_Q5_0",
    "q5_1": "MOSTLY_Q5_1"}.items()}


def byte_alphabet():
    """The printable stand-ins of the 256 bytes in byte-level BPE."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in printable]
    return [chr(b) for b in printable] + [chr(256 + i) for i in range(len(hidden))]


def vocabulary(size):
    tokens, merges = ["<s>", "</s>"] + byte_alphabet(), []
    letters = [chr(c) for c in range(33, 127)]
    pairs = []
    for a in letters:
        for b in letters:
            if len(tokens) < size:
                tokens.append(a + b), merges.append(f"{a} {b}"), pairs.append(a + b)
    for pair in pairs:
        for c in letters:
            if len(tokens) < size:
                tokens.append(pair + c), merges.append(f"{pair} {c}")
    assert len(tokens) == size
    return tokens, merges


def add_header(writer, shape, file_type, with_vocabulary):
    writer.add_name("random")
    writer.add_file_type(file_type)
    writer.add_block_count(shape["layers"])
    writer.add_context_length(shape["context"])
    writer.add_embedding_length(shape["hidden"])
    writer.add_feed_forward_length(shape["ffn"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["kv_heads"])
    writer.add_key_length(shape["head_dim"])
    writer.add_value_length(shape["head_dim"])
    writer.add_rope_dimension_count(shape["head_dim"])
    writer.add_rope_freq_base(shape["theta"])
    writer.add_layer_norm_rms_eps(shape["eps"])
    writer.add_vocab_size(shape["vocab"])
    if not with_vocabulary:
        writer.add_tokenizer_model("no_vocab")
        return
    tokens, merges = vocabulary(shape["vocab"])
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm" if shape["arch"] == "llama" else "qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types([control if i < 2 else normal for i in range(len(tokens))])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)


def tensors(shape):
    """Name and (rows, columns) of each matrix, (columns,) of each norm, in file order."""
    hidden, ffn, dim = shape["hidden"], shape["ffn"], shape["head_dim"]
    q, kv = shape["heads"] * dim, shape["kv_heads"] * dim
    yield "token_embd.weight", (shape["vocab"], hidden)
    for i in range(shape["layers"]):
        block = f"blk.{i}."
        yield block + "attn_norm.weight", (hidden,)
        yield block + "attn_q.weight", (q, hidden)
        yield block + "attn_k.weight", (kv, hidden)
        yield block + "attn_v.weight", (kv, hidden)
        if shape["arch"] == "qwen3":
            yield block + "attn_q_norm.weight", (dim,)
            yield block + "attn_k_norm.weight", (dim,)
        yield block + "attn_output.weight", (hidden, q)
        yield block + "ffn_norm.weight", (hidden,)
        yield block + "ffn_gate.weight", (ffn, hidden)
        yield block + "ffn_up.weight", (ffn, hidden)
        yield block + "ffn_down.weight", (hidden, ffn)
    yield "output_norm.weight", (hidden,)


def values(name, extents, seed):
    if len(extents) == 1:
        return np.ones(extents, np.float32)
    random = np.random.Generator(np.random.SFC64([seed, zlib.crc32(name.encode())]))
    return random.standard_normal(extents, np.float32) * np.float32(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--shape", choices=SHAPES, default="qwen3-0.6b")
    parser.add_argument("--type", choices=TYPES, default="q8_0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", type=int, help="instead of the shape's own number")
    parser.add_argument("--vocabulary", choices=["yes", "no"], default="yes")
    args = parser.parse_args()

    shape = dict(SHAPES[args.shape])
    if args.layers:
        shape["layers"] = args.layers
    writer = gguf.GGUFWriter(args.out, shape["arch"])
    add_header(writer, shape, FILE_TYPES[args.type], args.vocabulary == "yes")
    for name, extents in tensors(shape):
        kind = TYPES[args.type] if len(extents) == 2 else gguf.GGMLQuantizationType.F32
        data = gguf.quants.quantize(values(name, extents, args.seed), kind)
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    digest = hashlib.sha256()
    with open(args.out, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    print(f"{args.out} {args.shape} {args.type} seed {args.seed} sha256 {digest.hexdigest()}")


if __name__ == "__main__":
    main()
