#include "model/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ashlar {
namespace {

constexpr int64_t kMaxExtent = 1 << 22;  // so that no product of a few extents overflows
constexpr int64_t kMaxLayers = 4096;

void CheckHeads(ConfigReader& reader, const LayerSpec& layer, std::string_view heads_key,
                std::string_view kv_key) {
  int64_t widest = int64_t{layer.heads} * std::max(layer.head_dim, layer.head_dim_v);
  if (widest > kMaxExtent) {
    reader.Refuse(heads_key, fmt::format("{} heads of {}", layer.heads, layer.head_dim),
                  fmt::format("at most {} values in all heads", kMaxExtent),
                  "use the model's original files");
  }
  if (layer.heads % layer.kv_heads == 0) return;
  reader.Refuse(kv_key, fmt::format("{}", layer.kv_heads),
                fmt::format("a divisor of {} {}", heads_key, layer.heads),
                "use the model's original files");
}

void AddIds(const Json& value, std::vector<int32_t>& ids) {
  if (value.is_array()) {
    for (const Json& entry : value) AddIds(entry, ids);
  } else if (value.is_number_integer() && value.get<int64_t>() >= 0 &&
             value.get<int64_t>() < kMaxExtent) {
    int32_t id = value.get<int32_t>();
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
}

}  // namespace

DecoderShape ReadDecoder(ConfigReader& reader, ModelConfig& config, std::string_view activation) {
  config.hidden = reader.Integer("hidden_size", 1, kMaxExtent);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  config.vocab = reader.Integer("vocab_size", 1, kMaxExtent);
  config.norm_eps = static_cast<float>(reader.Number("rms_norm_eps", 0, 1, 1e-6));
  config.context_length = reader.Integer("max_position_embeddings", 1, int64_t{1} << 40, 2048);
  config.bos = static_cast<int32_t>(reader.Integer("bos_token_id", -1, kMaxExtent, -1));
  std::string dtype = reader.String("dtype", reader.String("torch_dtype", "bfloat16"));
  config.weight_dtype = ParseDType(dtype).value_or(DType::kBF16);

  std::string found = reader.String("hidden_activation", reader.String("hidden_act", activation));
  if (found != activation) {
    reader.Refuse("hidden_act", fmt::format("\"{}\" is not supported", found),
                  std::string(activation), "choose a model with this activation");
  }

  DecoderShape shape;
  shape.layers = static_cast<int>(reader.Integer("num_hidden_layers", 1, kMaxLayers));
  LayerSpec& layer = shape.layer;
  layer.heads = static_cast<int>(reader.Integer("num_attention_heads", 1, kMaxExtent));
  layer.kv_heads =
      static_cast<int>(reader.Integer("num_key_value_heads", 1, kMaxExtent, layer.heads));
  int64_t derived = std::max<int64_t>(config.hidden / layer.heads, 1);
  layer.head_dim = static_cast<int>(reader.Integer("head_dim", 1, 1 << 16, derived));
  layer.head_dim_v = layer.head_dim;
  layer.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(layer.head_dim)));
  CheckHeads(reader, layer, "num_attention_heads", "num_key_value_heads");
  double share = reader.Number("partial_rotary_factor", 0, 1, 1);
  shape.rotary_dim = static_cast<int>(layer.head_dim * share) / 2 * 2;
  config.layers.assign(static_cast<size_t>(shape.layers), layer);
  return shape;
}

DecoderShape ReadGgufDecoder(ConfigReader& reader, ModelConfig& config) {
  const Checkpoint& file = *reader.gguf();
  config.hidden = reader.Integer("embedding_length", 1, kMaxExtent);
  config.intermediate = reader.Integer("feed_forward_length", 1, kMaxExtent);
  config.norm_eps =
      static_cast<float>(reader.Number("attention.layer_norm_rms_epsilon", 0, 1, 1e-6));
  config.context_length = reader.Integer("context_length", 1, int64_t{1} << 40, 2048);
  config.tied_head = file.Find("output.weight") == nullptr;
  if (const TensorInfo* embedding = file.Find("token_embd.weight"); embedding != nullptr) {
    config.vocab = embedding->shape.size() == 2 ? embedding->shape[0] : 0;
  } else {
    reader.problems().push_back({reader.place() + " tensor token_embd.weight", "is missing",
                                 "the embedding of a language model", "convert the model again"});
  }
  auto id = [&file](const char* key) -> int32_t {
    auto entry = file.gguf.find(key);
    if (entry == file.gguf.end()) return -1;
    if (const auto* value = std::get_if<uint64_t>(&entry->second)) {
      return *value < kMaxExtent ? static_cast<int32_t>(*value) : -1;
    }
    const auto* value = std::get_if<int64_t>(&entry->second);
    return value != nullptr && *value >= 0 && *value < kMaxExtent ? static_cast<int32_t>(*value)
                                                                  : -1;
  };
  config.bos = id("tokenizer.ggml.bos_token_id");
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    int32_t end = id(key);
    if (end >= 0) AddIds(Json(end), config.eos);
  }
  if (const TensorInfo* head = file.Find("blk.0.attn_q.weight")) config.weight_dtype = head->dtype;

  DecoderShape shape;
  shape.layers = static_cast<int>(reader.Integer("block_count", 1, kMaxLayers));
  LayerSpec& layer = shape.layer;
  layer.heads = static_cast<int>(reader.Integer("attention.head_count", 1, kMaxExtent));
  layer.kv_heads =
      static_cast<int>(reader.Integer("attention.head_count_kv", 1, kMaxExtent, layer.heads));
  int64_t derived = std::max<int64_t>(config.hidden / layer.heads, 1);
  layer.head_dim = static_cast<int>(reader.Integer("attention.key_length", 1, 1 << 16, derived));
  layer.head_dim_v =
      static_cast<int>(reader.Integer("attention.value_length", 1, 1 << 16, layer.head_dim));
  layer.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(layer.head_dim)));
  CheckHeads(reader, layer, "attention.head_count", "attention.head_count_kv");
  shape.rotary_dim =
      static_cast<int>(reader.Integer("rope.dimension_count", 0, layer.head_dim, layer.head_dim)) /
      2 * 2;
  config.layers.assign(static_cast<size_t>(shape.layers), layer);
  return shape;
}

}  // namespace ashlar
