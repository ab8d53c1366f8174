// The Llama family: pre-norm decoders with gated SiLU MLPs (Llama, SmolLM2, Mistral, Qwen2, Qwen3).
#include <fmt/format.h>

#include "model/architecture.h"
#include "model/common.h"
#include "model/rope.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

// Mistral gives every layer the window; Qwen only those from max_window_layers on, and only when
// switched on.
void SetWindows(ConfigReader& reader, ModelConfig& config, bool by_switch) {
  int window = static_cast<int>(reader.Integer("sliding_window", 1, 1 << 30, 0));
  if (by_switch && !reader.Boolean("use_sliding_window", false)) window = 0;
  if (window == 0) return;
  int first = by_switch ? static_cast<int>(reader.Integer("max_window_layers", 0, 1 << 20, 0)) : 0;
  SetSlidingLayers(reader, config, window, [first](int layer) { return layer >= first; });
}

void ReadFamily(ConfigReader& reader, ModelConfig& config, bool windows_by_switch) {
  DecoderShape shape = ReadDecoder(reader, config, "silu");
  config.tied_head = reader.Boolean("tie_word_embeddings", false);
  config.ropes = {ReadRope(reader, shape.rotary_dim, 10000)};
  SetWindows(reader, config, windows_by_switch);
  CountEmbedding(config);
  CountLayers(config);
  if (reader.Boolean("mlp_bias", false)) {
    reader.Refuse("mlp_bias", "true is not supported", "false",
                  "choose a model without MLP biases");
  }
}

}  // namespace

void ReadLlama(ConfigReader& reader, ModelConfig& config) {
  ReadFamily(reader, config, false);
  config.qkv_bias = config.output_bias = reader.Boolean("attention_bias", false);
}

void ReadQwen2(ConfigReader& reader, ModelConfig& config) {
  ReadFamily(reader, config, true);
  config.qkv_bias = true;
}

void ReadQwen3(ConfigReader& reader, ModelConfig& config) {
  ReadFamily(reader, config, true);
  config.qk_norm = true;
  config.qkv_bias = config.output_bias = reader.Boolean("attention_bias", false);
}

void ReadLlamaGguf(ConfigReader& reader, ModelConfig& config) {
  DecoderShape shape = ReadGgufDecoder(reader, config);
  config.ropes = {ReadGgufRope(reader, shape.rotary_dim)};
  CountEmbedding(config);
  CountLayers(config);
  config.ropes[0].interleaved = true;  // converters permute q and k rows of this architecture
  config.qkv_bias = reader.gguf()->Find("blk.0.attn_q.bias") != nullptr;
  config.output_bias = reader.gguf()->Find("blk.0.attn_output.bias") != nullptr;
  if (reader.gguf()->Find("blk.0.ffn_gate_inp.weight") != nullptr) {
    reader.Refuse("expert_count", "a mixture of experts", "a dense model", "choose a dense model");
  }
}

void ReadQwen2Gguf(ConfigReader& reader, ModelConfig& config) {
  DecoderShape shape = ReadGgufDecoder(reader, config);
  config.ropes = {ReadGgufRope(reader, shape.rotary_dim)};
  CountEmbedding(config);
  CountLayers(config);
  config.qkv_bias = true;
}

void ReadQwen3Gguf(ConfigReader& reader, ModelConfig& config) {
  DecoderShape shape = ReadGgufDecoder(reader, config);
  config.ropes = {ReadGgufRope(reader, shape.rotary_dim)};
  CountEmbedding(config);
  CountLayers(config);
  config.qk_norm = true;
}

}  // namespace ashlar
