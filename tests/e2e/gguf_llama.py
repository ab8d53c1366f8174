"""A Llama-family GGUF in numpy, float32 activations: the oracle for logits and greedy ids. Equals transformers to 1e-4."""
import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize


class Model:
    def __init__(self, path):
        reader = GGUFReader(path)
        field = lambda key: reader.fields["llama." + key].contents()
        self.weights = {t.name: np.ascontiguousarray(dequantize(t.data, t.tensor_type).astype(np.float32)) for t in reader.tensors}
        self.layers, self.heads = field("block_count"), field("attention.head_count")
        self.kv_heads, self.dim = field("attention.head_count_kv"), field("embedding_length")
        self.head_dim, self.eps = self.dim // self.heads, field("attention.layer_norm_rms_epsilon")
        self.inv_freq = field("rope.freq_base") ** (-np.arange(0, self.head_dim, 2, dtype=np.float64) / self.head_dim)
        self.reset()

    def reset(self):
        self.k, self.v, self.length = [None] * self.layers, [None] * self.layers, 0

    def norm(self, x, w):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * w

    def rope(self, x, positions):  # GGUF stores q and k rows for interleaved pairs
        angle = positions[:, None] * self.inv_freq
        cos, sin = np.cos(angle).astype(np.float32)[:, None], np.sin(angle).astype(np.float32)[:, None]
        even, odd, y = x[..., 0::2], x[..., 1::2], np.empty_like(x)
        y[..., 0::2], y[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
        return y

    def append(self, ids):
        """Adds tokens and returns the logits of the last one."""
        w, n = self.weights, len(ids)
        x, positions = w["token_embd.weight"][ids], np.arange(self.length, self.length + n)
        for layer in range(self.layers):
            b = f"blk.{layer}."
            h = self.norm(x, w[b + "attn_norm.weight"])
            q = self.rope((h @ w[b + "attn_q.weight"].T).reshape(n, self.heads, self.head_dim), positions)
            k = self.rope((h @ w[b + "attn_k.weight"].T).reshape(n, self.kv_heads, self.head_dim), positions)
            v = (h @ w[b + "attn_v.weight"].T).reshape(n, self.kv_heads, self.head_dim)
            self.k[layer] = k if self.k[layer] is None else np.concatenate([self.k[layer], k])
            self.v[layer] = v if self.v[layer] is None else np.concatenate([self.v[layer], v])
            keys, values = (np.repeat(c, self.heads // self.kv_heads, 1) for c in (self.k[layer], self.v[layer]))
            s = np.einsum("qhd,khd->hqk", q, keys) / np.sqrt(self.head_dim)
            s = np.where((np.arange(len(keys))[None] > positions[:, None])[None], -1e30, s)
            s = np.exp(s - s.max(-1, keepdims=True))
            s /= s.sum(-1, keepdims=True)
            x = x + np.einsum("hqk,khd->qhd", s, values).reshape(n, self.dim) @ w[b + "attn_output.weight"].T
            h = self.norm(x, w[b + "ffn_norm.weight"])
            gate = h @ w[b + "ffn_gate.weight"].T
            x = x + ((gate / (1 + np.exp(-gate))) * (h @ w[b + "ffn_up.weight"].T)) @ w[b + "ffn_down.weight"].T
        self.length += n
        return self.norm(x[-1], w["output_norm.weight"]) @ w.get("output.weight", w["token_embd.weight"]).T
