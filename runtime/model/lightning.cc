// MiniMax-Text-01 and M1: lightning attention, a decayed sum of outer products, and full attention
// in every eighth layer (arXiv 2501.08313); experts in each.
#include "model/architecture.h"
#include "model/common.h"
#include "model/states.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

constexpr std::string_view kLinear = "linear_attention", kFull = "full_attention";

// attn_type_list: 1 is full attention, 0 lightning. Newer files have layer_types.
std::vector<std::string> Types(ConfigReader& reader, size_t layers) {
  std::vector<std::string> types;
  for (int64_t type : reader.Integers("attn_type_list", 0, 1)) {
    types.emplace_back(type == 1 ? kFull : kLinear);
  }
  if (!types.empty()) {
    return CheckLayerTypes(reader, "attn_type_list", std::move(types), layers, {kLinear, kFull});
  }
  return LayerTypes(reader, "layer_types", layers, {kLinear, kFull},
                    [](int i) { return i % 2 == 0 ? kLinear : kFull; });
}

// q, k, v, the gate of the output, and the output itself.
void CountLightning(ModelConfig& config, const LayerSpec& attention) {
  config.weights.linear +=
      5.0 * static_cast<double>(config.hidden) * attention.heads * attention.head_dim;
}

}  // namespace

void ReadMiniMax(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadPlanned(reader, config);
  LayerSpec attention = ReadAttention(reader, config);
  LayerSpec recurrent = StateLayer({{{attention.heads, attention.head_dim, attention.head_dim},
                                     StateDType(reader, "mamba_ssm_cache_dtype", config)}});
  for (const std::string& type : Types(reader, static_cast<size_t>(layers))) {
    bool full = type == kFull;
    config.layers.push_back(full ? attention : recurrent);
    if (full) {
      CountAttention(config, attention);
    } else {
      CountLightning(config, attention);
    }
  }
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  Experts experts{.count = ReadExpertCount(reader),
                  .width = config.intermediate,
                  .shared_width = reader.Integer("shared_intermediate_size", 0, kMaxExtent, 0)};
  CountMlps(config, layers, config.intermediate, experts, [](int) { return true; });
}

}  // namespace ashlar
