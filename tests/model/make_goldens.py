"""Logits of tiny random-weight models from transformers (fp32, eager, CPU): goldens/NAME.json and NAME.f32.

    python3 make_goldens.py OUT

Weights come from `fill`, which tests/support/counter_weights.h repeats bit for bit, so no weights are committed. All values
are exact in bf16: a float32 and a bfloat16 checkpoint of a model hold the same numbers. NAME.f32 holds the logits of each prompt,
[tokens, vocab] float32 little-endian, one prompt after the other.
"""
import json
import os
import sys

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

BASE = dict(vocab_size=256, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
            head_dim=16, max_position_embeddings=256, rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=1, pad_token_id=2)
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
WINDOWS = ["sliding_attention", "full_attention"] * 2
MODELS = {
    "llama": dict(model_type="llama", rope_parameters=ROPE, tie_word_embeddings=False),
    "llama-tied-bias": dict(model_type="llama", rope_parameters=ROPE, tie_word_embeddings=True, attention_bias=True),
    "llama-llama3": dict(model_type="llama", tie_word_embeddings=True, rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0,
                         "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}),
    "llama-linear": dict(model_type="llama", tie_word_embeddings=False, rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
    "llama-yarn": dict(model_type="llama", tie_word_embeddings=False, rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                       "original_max_position_embeddings": 64}),
    "mistral-window": dict(model_type="mistral", rope_parameters=ROPE, tie_word_embeddings=False, sliding_window=12),
    "qwen2": dict(model_type="qwen2", rope_parameters=ROPE, tie_word_embeddings=True),
    "qwen3": dict(model_type="qwen3", rope_parameters=ROPE, tie_word_embeddings=True, num_key_value_heads=1),
    "qwen3-window": dict(model_type="qwen3", rope_parameters=ROPE, tie_word_embeddings=False, use_sliding_window=True, sliding_window=9,
                         max_window_layers=0, layer_types=WINDOWS),
    "gemma3": dict(model_type="gemma3_text", sliding_window=10, query_pre_attn_scalar=24, tie_word_embeddings=True, num_hidden_layers=6,
                   layer_types=["sliding_attention"] * 5 + ["full_attention"],
                   rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0},
                                    "sliding_attention": ROPE}),
}
PROMPTS = [24, 40]


def fill(name, shape):
    """Normal-like values from a hash of name and index, rounded to bf16. Mean and spread follow from the name."""
    count = int(np.prod(shape))
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    with np.errstate(over="ignore"):
        x = np.uint64(seed) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    sixteen = [(x >> np.uint64(s)) & np.uint64(0xFFFF) for s in (0, 16, 32, 48)]
    total = sum(part.astype(np.int64) for part in sixteen).astype(np.float64)
    normal = (total / 65536.0 - 2.0) * 1.7320508075688772
    if "norm" in name:
        mean, spread = 1.0, 0.125
    elif name.endswith("bias"):
        mean, spread = 0.0, 0.25
    elif "embed" in name or "lm_head" in name:
        mean, spread = 0.0, 1.0
    else:
        mean, spread = 0.0, 0.125
    values = (normal * spread + mean).astype(np.float32)
    bits = values.view(np.uint32)
    bits = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).reshape(shape)


def prompt(length):
    return [(7 * i * i + 13 * i + 5 * length) % 254 + 2 for i in range(length)]


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for name, settings in MODELS.items():
        settings = {**BASE, **settings}
        config = AutoConfig.for_model(**settings)
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
        tied = settings["tie_word_embeddings"]
        shapes = {}
        with torch.no_grad():
            for key, parameter in model.named_parameters():
                if not (tied and key == "lm_head.weight"):
                    parameter.copy_(torch.from_numpy(fill(key, tuple(parameter.shape))))
                    shapes[key] = list(parameter.shape)
        logits, margins = [], []
        for length in PROMPTS:
            with torch.no_grad():
                result = model(input_ids=torch.tensor([prompt(length)]), use_cache=False).logits[0].float().numpy()
            logits.append(result)
            top = np.sort(result, axis=-1)
            margins += list(top[:, -1] - top[:, -2])
        written = config.to_dict()
        for key in ("transformers_version", "_name_or_path"):
            written.pop(key, None)
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump({"config": written, "prompts": [prompt(n) for n in PROMPTS], "tensors": shapes}, file, indent=1, sort_keys=True)
            file.write("\n")
        np.concatenate(logits).astype("<f4").tofile(os.path.join(out, name + ".f32"))
        print(name, len(shapes), "tensors, median margin", round(float(np.median(margins)), 3), flush=True)


if __name__ == "__main__":
    main()
