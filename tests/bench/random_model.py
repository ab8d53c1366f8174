"""Write a Hugging Face style model folder with random bf16 weights (normal, std 0.02, one seed) and a synthetic tokenizer.

python3 random_model.py {qwen3-0.6b,llama-8b} DIR [--config-only]
"""
import json, os, sys, time

CONFIGS = {
    "qwen3-0.6b": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024,
        "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "max_position_embeddings": 40960, "tie_word_embeddings": True, "rms_norm_eps": 1e-6, "hidden_act": "silu",
        "attention_bias": False, "rope_theta": 1000000, "rope_parameters": {"rope_type": "default", "rope_theta": 1000000},
        "torch_dtype": "bfloat16", "dtype": "bfloat16", "use_cache": True, "eos_token_id": 1, "bos_token_id": 0},
    "llama-8b": {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "max_position_embeddings": 131072, "tie_word_embeddings": False, "rms_norm_eps": 1e-5, "hidden_act": "silu",
        "attention_bias": False, "mlp_bias": False, "rope_theta": 500000.0,
        "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
        "torch_dtype": "bfloat16", "dtype": "bfloat16", "use_cache": True, "eos_token_id": 1, "bos_token_id": 0},
}

def tokenizer(folder, vocab):
    """Byte-level BPE of exactly `vocab` entries: 256 bytes, then pairs and triples of printable ASCII."""
    from tokenizers import Tokenizer, models, decoders, pre_tokenizers
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    v = {"<s>": 0, "</s>": 1}
    for c in alphabet: v[c] = len(v)
    letters = [chr(c) for c in range(33, 127)]
    merges, pairs = [], []
    for a in letters:
        for b in letters:
            if len(v) < vocab: v[a + b] = len(v); merges.append((a, b)); pairs.append(a + b)
    for p in pairs:
        for c in letters:
            if len(v) >= vocab: break
            v[p + c] = len(v); merges.append((p, c))
    t = Tokenizer(models.BPE(vocab=v, merges=merges)); t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel(); t.add_special_tokens(["<s>", "</s>"])
    t.save(os.path.join(folder, "tokenizer.json"))
    json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "model_max_length": 131072},
              open(os.path.join(folder, "tokenizer_config.json"), "w"))

def weights(folder, c):
    """One file a layer, written by several threads at once; every tensor from a seed of its own."""
    import torch
    from concurrent.futures import ThreadPoolExecutor
    from safetensors.torch import save_file
    H, I, D = c["hidden_size"], c["intermediate_size"], c["head_dim"]; q, k = c["num_attention_heads"] * D, c["num_key_value_heads"] * D
    L = c["num_hidden_layers"]
    def shard(n):
        g = torch.Generator(device="cuda").manual_seed(n)
        def mat(*s): return torch.empty(*s, dtype=torch.bfloat16, device="cuda").normal_(0, 0.02, generator=g).cpu()
        def one(*s): return torch.ones(*s, dtype=torch.bfloat16)
        if n == L:
            t = {"model.embed_tokens.weight": mat(c["vocab_size"], H), "model.norm.weight": one(H)}
            if not c["tie_word_embeddings"]: t["lm_head.weight"] = mat(c["vocab_size"], H)
        else:
            p = f"model.layers.{n}."
            t = {p + "self_attn.q_proj.weight": mat(q, H), p + "self_attn.k_proj.weight": mat(k, H), p + "self_attn.v_proj.weight": mat(k, H),
                 p + "self_attn.o_proj.weight": mat(H, q), p + "mlp.gate_proj.weight": mat(I, H), p + "mlp.up_proj.weight": mat(I, H),
                 p + "mlp.down_proj.weight": mat(H, I), p + "input_layernorm.weight": one(H), p + "post_attention_layernorm.weight": one(H)}
            if c["model_type"] == "qwen3": t |= {p + "self_attn.q_norm.weight": one(D), p + "self_attn.k_norm.weight": one(D)}
        name = f"model-{n + 1:05d}-of-{L + 1:05d}.safetensors"
        save_file(t, os.path.join(folder, name), metadata={"format": "pt"})
        return {k_: (name, v_.numel() * 2) for k_, v_ in t.items()}
    index = {}
    with ThreadPoolExecutor(8) as pool:
        for part in pool.map(shard, [L, *range(L)]): index |= part
    total = sum(size for _, size in index.values())
    json.dump({"metadata": {"total_size": total}, "weight_map": {k_: name for k_, (name, _) in index.items()}},
              open(os.path.join(folder, "model.safetensors.index.json"), "w"))
    return total

def main():
    name, folder = sys.argv[1:3]; c = CONFIGS[name]; os.makedirs(folder, exist_ok=True); t = time.time()
    json.dump(c, open(os.path.join(folder, "config.json"), "w"), indent=1)
    tokenizer(folder, c["vocab_size"]); t1 = time.time()
    n = 0 if "--config-only" in sys.argv else weights(folder, c)
    print(json.dumps({"wrote": name, "bytes": n, "tokenizer_s": round(t1 - t, 2), "weights_s": round(time.time() - t1, 2)}))

if __name__ == "__main__": main()
