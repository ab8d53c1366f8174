// The geometry of public models (configs/): what is read from each, against a golden text, and that
// no key of these files may be absurd.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/config.h"
#include "model/forward.h"
#include "support/golden.h"
#include "support/model_configs.h"

namespace ashlar {
namespace {

using testing_support::ModelConfigNames;
using testing_support::PublicConfig;

std::string StatesText(const LayerSpec& layer) {
  std::string text;
  int64_t bytes = 0;
  for (const StateShape& state : layer.states) {
    int64_t count = 1;
    for (int64_t extent : state.shape) count *= extent;
    bytes += *StorageBytes(state.dtype, count);
    text += fmt::format(" [{}] {}", fmt::join(state.shape, ", "), Info(state.dtype).name);
  }
  return fmt::format("{}, {} bytes", text, bytes);
}

std::string LayerText(const LayerSpec& layer) {
  std::string text(Name(layer.kind));
  if (layer.kind == KvKind::kMamba) return text + StatesText(layer);
  text += fmt::format(" {} heads on {} of {}", layer.heads, layer.kv_heads, layer.head_dim);
  if (layer.head_dim_v != layer.head_dim) text += fmt::format("/{}", layer.head_dim_v);
  if (layer.window > 0) text += fmt::format(", window {}", layer.window);
  if (layer.sinks) text += ", sinks";
  if (layer.sparse) text += fmt::format(", sparse, indexer of {} bytes", layer.indexer_bytes);
  return text;
}

// One line a model, then one a kind of layer in the order of first appearance.
std::string ModelText(const std::string& name, const ModelConfig& model) {
  std::string text =
      fmt::format("{}: {}, {:.2f} B weights, {:.1f} GB{}, context {}{}\n", name, model.architecture,
                  model.weights.total() / 1e9, static_cast<double>(model.weight_bytes()) / 1e9,
                  model.quantization.method.empty() ? "" : " " + model.quantization.method,
                  model.context_length, model.plan_only() ? ", plan only" : "");
  std::vector<std::pair<std::string, int>> kinds;
  for (const LayerSpec& layer : model.layers) {
    std::string kind = LayerText(layer);
    auto same = std::find_if(kinds.begin(), kinds.end(),
                             [&](const auto& seen) { return seen.first == kind; });
    if (same == kinds.end()) same = kinds.insert(kinds.end(), {kind, 0});
    ++same->second;
  }
  for (const auto& [kind, count] : kinds) text += fmt::format("  {} x {}\n", count, kind);
  return text;
}

TEST(Models, AreReadAsTheGoldenSays) {
  std::string text;
  for (const std::string& name : ModelConfigNames()) {
    Result<ModelConfig> model = ReadModelConfig(PublicConfig(name), name);
    ASSERT_TRUE(model.ok()) << Text(model.problems());
    text += ModelText(name, *model);
  }
  testing_support::ExpectGolden("tests/model/goldens/models.txt", text);
}

TEST(Models, HaveTheirPublishedSize) {
  for (const std::string& name : ModelConfigNames()) {
    Json config = PublicConfig(name);
    auto published = config["_parameters"].get<double>();
    auto counted = static_cast<double>(ReadModelConfig(config, name)->parameters());
    EXPECT_NEAR(counted / published, 1, 0.03) << name;
  }
}

TEST(Models, AreManyAndOfEveryKind) {
  std::set<KvKind> kinds;
  for (const std::string& name : ModelConfigNames()) {
    ModelConfig model = ReadModelConfig(PublicConfig(name), name).value();
    for (const LayerSpec& layer : model.layers) kinds.insert(layer.kind);
  }
  EXPECT_GE(ModelConfigNames().size(), 30u);
  EXPECT_EQ(kinds, (std::set{KvKind::kFull, KvKind::kMla, KvKind::kSliding, KvKind::kChunkedLocal,
                             KvKind::kCross, KvKind::kEncoderOnly, KvKind::kMamba}));
}

// Paths of all members but ours, into nested objects.
std::vector<Json::json_pointer> Keys(const Json& object, const Json::json_pointer& at) {
  std::vector<Json::json_pointer> keys;
  for (const auto& [key, value] : object.items()) {
    if (key.starts_with('_')) continue;
    keys.push_back(at / key);
    if (!value.is_object()) continue;
    for (const Json::json_pointer& inner : Keys(value, at / key)) keys.push_back(inner);
  }
  return keys;
}

// Refused, in four parts, and the message names the key.
void ExpectRefusedByName(const Json& config, const std::string& name, const std::string& key) {
  Result<ModelConfig> model = ReadModelConfig(config, name);
  ASSERT_FALSE(model.ok()) << name << " accepts " << key;
  bool named = false;
  for (const Problem& problem : model.problems()) {
    named |= problem.place.ends_with(key);
    EXPECT_FALSE(problem.found.empty() || problem.allowed.empty() || problem.next.empty())
        << problem.Text();
  }
  EXPECT_TRUE(named) << key << " is not named by " << Text(model.problems());
}

TEST(Models, RefuseAnyKeyOfTheWrongType) {
  for (const std::string& name : ModelConfigNames()) {
    const Json config = PublicConfig(name);
    for (const Json::json_pointer& key : Keys(config, Json::json_pointer())) {
      if (key.back() == "text_config") continue;  // without an object the file is no wrapper
      Json twisted = config;
      twisted[key] = config[key].is_string() ? Json(7) : Json("nonsense");
      ExpectRefusedByName(twisted, name, key.back());
    }
  }
}

TEST(Models, RefuseAnyAbsurdNumber) {
  const Json absurd[] = {-7, int64_t{-1} << 62, uint64_t{1} << 63, 1e300, -0.5};
  for (const std::string& name : ModelConfigNames()) {
    const Json config = PublicConfig(name);
    for (const Json::json_pointer& key : Keys(config, Json::json_pointer())) {
      if (!config[key].is_number()) continue;
      for (const Json& value : absurd) {
        Json twisted = config;
        twisted[key] = value;
        ExpectRefusedByName(twisted, name, key.back());
      }
    }
  }
}

// Any size in range may meet any other: what is accepted has a weight count that fits.
TEST(Models, ExtremesInRangeNeverOverflow) {
  const int64_t extremes[] = {0, 1, 1 << 12, 1 << 16, 1 << 22};
  for (const std::string& name : ModelConfigNames()) {
    const Json config = PublicConfig(name);
    for (const Json::json_pointer& key : Keys(config, Json::json_pointer())) {
      if (!config[key].is_number()) continue;
      for (int64_t value : extremes) {
        Json twisted = config;
        twisted[key] = value;
        Result<ModelConfig> model = ReadModelConfig(twisted, name);
        if (!model.ok()) continue;
        EXPECT_GT(model->parameters(), 0) << name << " " << key.to_string() << " " << value;
        EXPECT_GT(model->weight_bytes(), 0) << name << " " << key.to_string() << " " << value;
        EXPECT_LE(model->layers.size(), 3u * 4096u);  // an encoder, and a decoder twice
      }
    }
  }
}

// Beside hidden, its norm, a branch and the gates with their ups stands whatever is largest: the
// attention half's QKV, queries and output, the other half, or the logits.
TEST(Models, TheWorkspaceHoldsTheLargestOfWhatTakesTurns) {
  const ModelConfig model = *ReadModelConfig(PublicConfig("llama-3.1-8b"), "");
  const auto bytes = [&](int logit_rows) {
    return ForwardWorkspaceBytes(model, DType::kBF16, 2048, logit_rows);
  };
  const int64_t kept = int64_t{2} * 2048 * (3 * 4096 + 2 * 14336);
  EXPECT_EQ(bytes(64), kept + 64 * 4096 * 2 + int64_t{2} * 2048 * (6144 + 4096 + 4096));
  EXPECT_EQ(bytes(256), kept + 256 * 4096 * 2 + int64_t{4} * 256 * 128256);
}

}  // namespace
}  // namespace ashlar
