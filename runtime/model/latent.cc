#include "model/latent.h"

#include <cmath>

#include "base/checked.h"
#include "model/architecture.h"
#include "model/common.h"
#include "model/mixture.h"

namespace ashlar {
namespace {

struct Indexer {
  int64_t heads, head_dim;
};

Indexer ReadIndexer(ConfigReader& reader) {
  return {.heads = reader.Integer("index_n_heads", 1, kMaxRank),
          .head_dim = reader.Integer("index_head_dim", 1, kMaxRank)};
}

// One key a token in 8-bit floats, with a float32 scale for each 128 of them.
int IndexerBytes(const Indexer& indexer) {
  return static_cast<int>(indexer.head_dim + 4 * CeilDiv<int64_t>(indexer.head_dim, 128));
}

double IndexerWeights(const Indexer& indexer, double hidden, double q_rank) {
  auto heads = static_cast<double>(indexer.heads), head_dim = static_cast<double>(indexer.head_dim);
  return q_rank * heads * head_dim + hidden * (head_dim + heads);
}

// Layers without experts: by mlp_layer_types, else the first ones and all between.
std::function<bool(int)> SparseLayers(ConfigReader& reader, int layers, int dense_by_class) {
  int64_t dense = reader.Integer("first_k_dense_replace", 0, kMaxLayers, dense_by_class);
  int64_t step = reader.Integer("moe_layer_freq", 1, kMaxLayers, 1);
  std::vector<std::string> types =
      LayerTypes(reader, "mlp_layer_types", static_cast<size_t>(layers), {"dense", "sparse"},
                 [&](int i) { return i >= dense && i % step == 0 ? "sparse" : "dense"; });
  return [types](int i) {
    return static_cast<size_t>(i) < types.size() && types[static_cast<size_t>(i)] == "sparse";
  };
}

void ReadLatent(ConfigReader& reader, ModelConfig& config, int dense_by_class) {
  int layers = ReadPlanned(reader, config);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  config.layers.assign(static_cast<size_t>(layers), ReadLatentAttention(reader, config, layers));
  CountMlps(config, layers, config.intermediate, ReadDeepSeekExperts(reader),
            SparseLayers(reader, layers, dense_by_class));
}

}  // namespace

LayerSpec ReadLatentAttention(ConfigReader& reader, ModelConfig& config, int layers) {
  int64_t heads = reader.Integer("num_attention_heads", 1, kMaxRank);
  int64_t rank = reader.Integer("kv_lora_rank", 1, kMaxRank);
  int64_t rotary = reader.Integer("qk_rope_head_dim", 1, kMaxRank);
  int64_t plain = reader.Integer("qk_nope_head_dim", 1, kMaxRank);
  int64_t value = reader.Integer("v_head_dim", 1, kMaxRank);
  int64_t q_rank = reader.Integer("q_lora_rank", 1, kMaxRank, 0);  // absent: q is not compressed

  LayerSpec layer;
  layer.kind = KvKind::kMla;
  layer.heads = static_cast<int>(heads);
  layer.kv_heads = 1;
  layer.head_dim = static_cast<int>(rank + rotary);
  layer.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(plain + rotary)));
  layer.sparse = reader.Integer("index_topk", 1, kMaxExtent, 0) > 0;

  auto hidden = static_cast<double>(config.hidden);
  auto q = static_cast<double>(heads) * static_cast<double>(plain + rotary);
  auto inner = static_cast<double>(q_rank);
  double weights = q_rank > 0 ? hidden * inner + inner * q : hidden * q;
  weights += hidden * static_cast<double>(rank + rotary);
  weights +=
      static_cast<double>(rank) * static_cast<double>(heads) * static_cast<double>(plain + value);
  weights += hidden * static_cast<double>(heads) * static_cast<double>(value);
  if (layer.sparse) {
    Indexer indexer = ReadIndexer(reader);
    layer.indexer_bytes = IndexerBytes(indexer);
    weights += IndexerWeights(indexer, hidden, inner);
  }
  config.weights.linear += weights * layers;
  return layer;
}

void ReadDeepSeekV2(ConfigReader& reader, ModelConfig& config) { ReadLatent(reader, config, 0); }

void ReadDeepSeekV3(ConfigReader& reader, ModelConfig& config) { ReadLatent(reader, config, 3); }

void ReadGlm4MoeLite(ConfigReader& reader, ModelConfig& config) { ReadLatent(reader, config, 1); }

}  // namespace ashlar
