// The same public models and machines as in models_test.cc: the backend that vLLM 0.33 would choose
// for each kind of layer, by the reference catalogue.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "catalogue/vllm_assume.h"
#include "probe/platform.h"
#include "support/golden.h"
#include "support/model_configs.h"

namespace ashlar {
namespace {

using testing_support::ModelConfigNames;
using testing_support::PublicConfig;

// Layers that one choice serves.
struct Alike {
  AttentionRequest request;
  int layers = 0;
};

AttentionRequest RequestOf(const LayerSpec& layer) {
  AttentionRequest request;
  request.kind = layer.kind;
  request.heads = layer.heads;
  request.kv_heads = layer.kv_heads;
  request.head_dim = layer.head_dim;
  request.head_dim_v = layer.head_dim_v;
  request.window = layer.window;
  request.dtype = request.kv_dtype = DType::kBF16;
  request.sinks = layer.sinks;
  request.sparse = layer.sparse;
  return request;
}

std::vector<Alike> Distinct(const std::vector<LayerSpec>& layers) {
  std::vector<Alike> distinct;
  for (const LayerSpec& layer : layers) {
    AttentionRequest request = RequestOf(layer);
    auto same = std::find_if(distinct.begin(), distinct.end(),
                             [&](const Alike& seen) { return seen.request == request; });
    if (same == distinct.end()) same = distinct.insert(distinct.end(), {request, 0});
    ++same->layers;
  }
  return distinct;
}

std::string Chosen(const Alike& layers, const VllmFacts& facts, const VllmAssume& assume) {
  if (layers.request.kind == KvKind::kMamba) return "-";  // no choice to make
  VllmChoice choice = VllmSelect(facts, VllmRequestOf(layers.request, assume), "");
  return std::string(choice.chosen.empty() ? Name(choice.error) : choice.chosen);
}

// "full_attention x32 FLASH_ATTN; ".
std::string Choices(const ModelConfig& model, const VllmFacts& facts, const VllmAssume& assume) {
  std::string text;
  for (const Alike& layers : Distinct(model.layers)) {
    text += fmt::format("{}{} x{} {}", text.empty() ? "" : "; ", Name(layers.request.kind),
                        layers.layers, Chosen(layers, facts, assume));
  }
  return text;
}

TEST(ModelsInTheReferenceCatalogue, OneBackendOrOneNamedErrorForEachKindOfLayer) {
  const VllmAssume assume;
  std::string text;
  for (const std::string& profile : PlatformProfiles()) {
    Platform platform = ReadPlatform(profile).value();
    Result<VllmFacts> facts = VllmFactsOf(platform.devices.front(), assume);
    ASSERT_TRUE(facts.ok()) << profile << ": " << Text(facts.problems());
    text += profile + "\n";
    for (const std::string& name : ModelConfigNames()) {
      ModelConfig model = ReadModelConfig(PublicConfig(name), name).value();
      text += fmt::format("  {}: {}\n", name, Choices(model, *facts, assume));
    }
  }
  testing_support::ExpectGolden("tests/plan/golden/models_vllm.txt", text);
}

}  // namespace
}  // namespace ashlar
