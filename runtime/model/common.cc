#include "model/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/nearest.h"
#include "model/rope.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

constexpr std::string_view kFullAttention = "full_attention";
constexpr std::string_view kSlidingAttention = "sliding_attention";

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

// float8 names what most matrices of a quantised checkpoint are; the rest of it is bfloat16.
DType ReadDType(ConfigReader& reader) {
  std::string_view key = FirstOf(reader, {"dtype", "torch_dtype"});
  std::string name = reader.String(key, "bfloat16");
  if (name == "bfloat16" || name.starts_with("float8")) return DType::kBF16;
  if (name == "float16") return DType::kF16;
  if (name == "float32") return DType::kF32;
  reader.Refuse(key, fmt::format("\"{}\" is not supported", name),
                "bfloat16, float16, float32 or a float8", "use the model's original files");
  return DType::kBF16;
}

void ReadModel(ConfigReader& reader, ModelConfig& config) {
  config.hidden = reader.Integer("hidden_size", 1, kMaxExtent);
  config.vocab = reader.Integer("vocab_size", 1, kMaxExtent);
  config.context_length = reader.Integer("max_position_embeddings", 1, kMaxContext, 2048);
  config.bos = static_cast<int32_t>(reader.Integer("bos_token_id", -1, kMaxExtent, -1));
  config.weight_dtype = ReadDType(reader);
}

}  // namespace

DecoderShape ReadDecoder(ConfigReader& reader, ModelConfig& config, std::string_view activation) {
  ReadModel(reader, config);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  config.norm_eps = static_cast<float>(reader.Number("rms_norm_eps", 0, 1, 1e-6));
  std::string found = reader.String("hidden_activation", reader.String("hidden_act", activation));
  if (found != activation) {
    reader.Refuse("hidden_act", fmt::format("\"{}\" is not supported", found),
                  std::string(activation), "choose a model with this activation");
  }

  DecoderShape shape;
  shape.layers = static_cast<int>(reader.Integer("num_hidden_layers", 1, kMaxLayers));
  shape.layer = ReadAttention(reader, config);
  double share = reader.Number("partial_rotary_factor", 0, 1, 1);
  shape.rotary_dim = static_cast<int>(shape.layer.head_dim * share) / 2 * 2;
  config.layers.assign(static_cast<size_t>(shape.layers), shape.layer);
  return shape;
}

int ReadPlanned(ConfigReader& reader, ModelConfig& config) {
  ReadModel(reader, config);
  config.tied_head = reader.Boolean("tie_word_embeddings", false);
  CheckRopeTypes(reader);
  CountEmbedding(config);
  return static_cast<int>(reader.Integer("num_hidden_layers", 1, kMaxLayers));
}

LayerSpec ReadAttention(ConfigReader& reader, const ModelConfig& config) {
  int64_t heads = reader.Integer("num_attention_heads", 1, kMaxExtent);
  int64_t kv_heads = reader.Integer("num_key_value_heads", 1, kMaxExtent, heads);
  int64_t head_dim = reader.Integer("head_dim", 1, kMaxRank,
                                    std::clamp<int64_t>(config.hidden / heads, 1, kMaxRank));
  return MakeAttention(reader, "num_attention_heads", heads, "num_key_value_heads", kv_heads,
                       head_dim);
}

LayerSpec MakeAttention(ConfigReader& reader, std::string_view heads_key, int64_t heads,
                        std::string_view kv_key, int64_t kv_heads, int64_t head_dim) {
  LayerSpec layer;
  layer.heads = static_cast<int>(heads);
  layer.kv_heads = static_cast<int>(kv_heads);
  layer.head_dim = layer.head_dim_v = static_cast<int>(head_dim);
  layer.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_dim)));
  CheckHeads(reader, layer, heads_key, kv_key);
  return layer;
}

std::vector<std::string> LayerTypes(ConfigReader& reader, std::string_view key, size_t layers,
                                    std::initializer_list<std::string_view> allowed,
                                    const std::function<std::string_view(int)>& otherwise) {
  std::vector<std::string> types = reader.Strings(key);
  if (types.empty()) {
    for (size_t i = 0; i < layers; ++i) types.emplace_back(otherwise(static_cast<int>(i)));
    return types;
  }
  return CheckLayerTypes(reader, key, std::move(types), layers, allowed);
}

std::vector<std::string> CheckLayerTypes(ConfigReader& reader, std::string_view key,
                                         std::vector<std::string> types, size_t layers,
                                         std::initializer_list<std::string_view> allowed) {
  if (types.size() != layers) {
    reader.Refuse(key, fmt::format("{} entries", types.size()),
                  fmt::format("{}, one a layer", layers), "use the model's original files");
    return {};
  }
  for (const std::string& type : types) {
    if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) continue;
    reader.Refuse(key, fmt::format("\"{}\" is not supported", type),
                  OneOf(std::vector<std::string>(allowed.begin(), allowed.end())),
                  "choose a model with these");
    return {};
  }
  return types;
}

void SetSlidingLayers(ConfigReader& reader, ModelConfig& config, int window,
                      const std::function<bool(int)>& otherwise) {
  std::vector<std::string> types =
      LayerTypes(reader, "layer_types", config.layers.size(), {kFullAttention, kSlidingAttention},
                 [&](int layer) { return otherwise(layer) ? kSlidingAttention : kFullAttention; });
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != kSlidingAttention) continue;
    config.layers[i].kind = KvKind::kSliding;
    config.layers[i].window = window;
  }
  if (window > 0 || std::count(types.begin(), types.end(), kSlidingAttention) == 0) return;
  reader.Refuse("sliding_window", "is missing", "a window in tokens, for sliding_attention layers",
                "use the model's original files");
}

std::string_view FirstOf(ConfigReader& reader, std::initializer_list<std::string_view> keys) {
  auto found =
      std::find_if(keys.begin(), keys.end(), [&](std::string_view key) { return reader.Has(key); });
  return found != keys.end() ? *found : *keys.begin();
}

int64_t ReadExpertCount(ConfigReader& reader) {
  std::string_view key = FirstOf(reader, {"num_local_experts", "num_experts", "n_routed_experts"});
  return reader.Integer(key, 0, kMaxExperts);
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
  layer.head_dim = static_cast<int>(reader.Integer("attention.key_length", 1, kMaxRank, derived));
  layer.head_dim_v =
      static_cast<int>(reader.Integer("attention.value_length", 1, kMaxRank, layer.head_dim));
  layer.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(layer.head_dim)));
  CheckHeads(reader, layer, "attention.head_count", "attention.head_count_kv");
  shape.rotary_dim =
      static_cast<int>(reader.Integer("rope.dimension_count", 0, layer.head_dim, layer.head_dim)) /
      2 * 2;
  config.layers.assign(static_cast<size_t>(shape.layers), layer);
  return shape;
}

}  // namespace ashlar
