#include "model/forward.h"

namespace ashlar {
namespace {

WeightNames GgufNames() {
  WeightNames names;
  names.embedding = "token_embd.weight";
  names.head = "output.weight";
  names.final_norm = "output_norm.weight";
  names.q = "blk.{layer}.attn_q.weight";
  names.k = "blk.{layer}.attn_k.weight";
  names.v = "blk.{layer}.attn_v.weight";
  names.o = "blk.{layer}.attn_output.weight";
  names.gate = "blk.{layer}.ffn_gate.weight";
  names.up = "blk.{layer}.ffn_up.weight";
  names.down = "blk.{layer}.ffn_down.weight";
  names.attention_norm = "blk.{layer}.attn_norm.weight";
  names.mlp_norm = "blk.{layer}.ffn_norm.weight";
  names.post_attention_norm = "blk.{layer}.post_attention_norm.weight";
  names.post_mlp_norm = "blk.{layer}.post_ffw_norm.weight";
  names.q_norm = "blk.{layer}.attn_q_norm.weight";
  names.k_norm = "blk.{layer}.attn_k_norm.weight";
  names.ignored = {"rope_freqs.weight"};
  return names;
}

WeightNames HuggingFaceNames(bool sandwich_norms) {
  WeightNames names;
  names.embedding = "model.embed_tokens.weight";
  names.head = "lm_head.weight";
  names.final_norm = "model.norm.weight";
  names.q = "model.layers.{layer}.self_attn.q_proj.weight";
  names.k = "model.layers.{layer}.self_attn.k_proj.weight";
  names.v = "model.layers.{layer}.self_attn.v_proj.weight";
  names.o = "model.layers.{layer}.self_attn.o_proj.weight";
  names.gate = "model.layers.{layer}.mlp.gate_proj.weight";
  names.up = "model.layers.{layer}.mlp.up_proj.weight";
  names.down = "model.layers.{layer}.mlp.down_proj.weight";
  names.attention_norm = "model.layers.{layer}.input_layernorm.weight";
  // With sandwich norms "post_attention" means what it says; without, it is the norm before the
  // MLP.
  names.mlp_norm = sandwich_norms ? "model.layers.{layer}.pre_feedforward_layernorm.weight"
                                  : "model.layers.{layer}.post_attention_layernorm.weight";
  names.post_attention_norm = "model.layers.{layer}.post_attention_layernorm.weight";
  names.post_mlp_norm = "model.layers.{layer}.post_feedforward_layernorm.weight";
  names.q_norm = "model.layers.{layer}.self_attn.q_norm.weight";
  names.k_norm = "model.layers.{layer}.self_attn.k_norm.weight";
  names.ignored = {"rotary_emb.inv_freq"};
  return names;
}

}  // namespace

WeightNames NamesFor(const ModelConfig& config, Checkpoint::Format format) {
  return format == Checkpoint::Format::kGguf ? GgufNames()
                                             : HuggingFaceNames(config.sandwich_norms);
}

}  // namespace ashlar
