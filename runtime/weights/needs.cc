#include "weights/needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/nearest.h"
#include "checkpoint/layout.h"

namespace ashlar {
namespace {

constexpr size_t kMaxProblems = 20;

std::string InLayer(std::string name, size_t layer) {
  constexpr std::string_view kMark = "{layer}";
  if (size_t at = name.find(kMark); at != std::string::npos)
    name.replace(at, kMark.size(), std::to_string(layer));
  return name;
}

std::string BiasOf(const std::string& weight) {
  constexpr std::string_view kEnding = ".weight";
  Check(weight.ends_with(kEnding), "a matrix with a bias is named *.weight");
  return weight.substr(0, weight.size() - kEnding.size()) + ".bias";
}

LayerNeeds NeedsOfLayer(const ModelConfig& config, const WeightNames& names, size_t index) {
  const LayerSpec& spec = config.layers[index];
  const int64_t dim_v = spec.head_dim_v > 0 ? spec.head_dim_v : spec.head_dim;
  const int64_t q = int64_t{spec.heads} * spec.head_dim, k = int64_t{spec.kv_heads} * spec.head_dim;
  const int64_t v = spec.kv_heads * dim_v, attended = spec.heads * dim_v;
  auto need = [index](const std::string& name, std::vector<int64_t> shape) {
    return TensorNeed{InLayer(name, index), std::move(shape)};
  };
  LayerNeeds layer;
  layer.q = need(names.q, {q, config.hidden});
  layer.k = need(names.k, {k, config.hidden});
  layer.v = need(names.v, {v, config.hidden});
  layer.o = need(names.o, {config.hidden, attended});
  layer.gate = need(names.gate, {config.intermediate, config.hidden});
  layer.up = need(names.up, {config.intermediate, config.hidden});
  layer.down = need(names.down, {config.hidden, config.intermediate});
  layer.attention_norm = need(names.attention_norm, {config.hidden});
  layer.mlp_norm = need(names.mlp_norm, {config.hidden});
  if (config.sandwich_norms) {
    layer.post_attention_norm = need(names.post_attention_norm, {config.hidden});
    layer.post_mlp_norm = need(names.post_mlp_norm, {config.hidden});
  }
  if (config.qk_norm) {
    layer.q_norm = need(names.q_norm, {spec.head_dim});
    layer.k_norm = need(names.k_norm, {spec.head_dim});
  }
  if (config.qkv_bias) {
    layer.q_bias = need(BiasOf(names.q), {q});
    layer.k_bias = need(BiasOf(names.k), {k});
    layer.v_bias = need(BiasOf(names.v), {v});
  }
  if (config.output_bias) layer.o_bias = need(BiasOf(names.o), {config.hidden});
  return layer;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

std::string FileOf(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  return checkpoint.files[static_cast<size_t>(tensor.file)].path();
}

Problem Missing(const Checkpoint& checkpoint, const TensorNeed& need,
                const std::vector<std::string>& spare) {
  std::string nearest = Nearest(need.name, spare);
  return {fmt::format("{} tensor {}", checkpoint.path, need.name), "is missing",
          fmt::format("a tensor of shape {}", ShownShape(need.shape)),
          nearest.empty() ? "fetch the weights and their config again"
                          : fmt::format("did a conversion rename it to {}", Shown(nearest))};
}

// A tensor that is there; returns what is wrong with it.
std::optional<Problem> Mismatch(const Checkpoint& checkpoint, const TensorNeed& need,
                                const TensorInfo& tensor) {
  if (tensor.shape != need.shape) {
    return Problem{TensorPlace(FileOf(checkpoint, tensor), tensor),
                   "shape " + ShownShape(tensor.shape),
                   fmt::format("{}, as the config says", ShownShape(need.shape)),
                   "the weights and their config belong to different models: fetch both again"};
  }
  if (need.shape.size() == 1 && !IsFloat(tensor.dtype)) {
    return Problem{TensorPlace(FileOf(checkpoint, tensor), tensor),
                   fmt::format("a norm or bias of {}", Info(tensor.dtype).name),
                   "float32, float16 or bfloat16", "quantize the matrices only"};
  }
  return std::nullopt;
}

}  // namespace

std::vector<const TensorNeed*> ModelNeeds::all() const {
  std::vector<const TensorNeed*> list = {&embedding, &head, &final_norm};
  for (const LayerNeeds& l : layers) {
    for (const TensorNeed* need :
         {&l.q, &l.k, &l.v, &l.o, &l.gate, &l.up, &l.down, &l.attention_norm, &l.mlp_norm,
          &l.post_attention_norm, &l.post_mlp_norm, &l.q_norm, &l.k_norm, &l.q_bias, &l.k_bias,
          &l.v_bias, &l.o_bias}) {
      list.push_back(need);
    }
  }
  std::erase_if(list, [](const TensorNeed* need) { return need->name.empty(); });
  return list;
}

ModelNeeds NeedsOf(const ModelConfig& config, Checkpoint::Format format) {
  WeightNames names = NamesFor(config, format);
  ModelNeeds needs;
  needs.ignored = names.ignored;
  needs.embedding = {names.embedding, {config.vocab, config.hidden}};
  needs.final_norm = {names.final_norm, {config.hidden}};
  if (config.tied_head) {
    needs.ignored.push_back(names.head);  // some tools write the shared matrix twice
  } else {
    needs.head = {names.head, {config.vocab, config.hidden}};
  }
  for (size_t i = 0; i < config.layers.size(); ++i)
    needs.layers.push_back(NeedsOfLayer(config, names, i));
  return needs;
}

Problems CompareTensors(const Checkpoint& checkpoint, const ModelConfig& config,
                        const ModelNeeds& needs) {
  std::vector<const TensorNeed*> wanted = needs.all();
  std::set<std::string_view> names;
  for (const TensorNeed* need : wanted) names.insert(need->name);
  std::vector<const TensorInfo*> unknown;
  std::vector<std::string> spare;
  for (const TensorInfo& tensor : checkpoint.tensors) {
    if (names.contains(tensor.name)) continue;
    bool ignored = std::any_of(needs.ignored.begin(), needs.ignored.end(),
                               [&](const std::string& end) { return tensor.name.ends_with(end); });
    if (ignored) continue;
    unknown.push_back(&tensor);
    if (spare.size() < kMaxProblems) spare.push_back(tensor.name);
  }

  Problems problems;
  int64_t left_out = 0;
  auto add = [&](Problem problem) {
    if (problems.size() < kMaxProblems) {
      problems.push_back(std::move(problem));
    } else {
      ++left_out;
    }
  };
  for (const TensorNeed* need : wanted) {
    const TensorInfo* tensor = checkpoint.Find(need->name);
    if (tensor == nullptr) {
      add(Missing(checkpoint, *need, spare));
    } else if (std::optional<Problem> problem = Mismatch(checkpoint, *need, *tensor)) {
      add(std::move(*problem));
    }
  }
  for (const TensorInfo* tensor : unknown) {
    add({TensorPlace(FileOf(checkpoint, *tensor), *tensor),
         fmt::format("is no part of architecture {} with {} layers", config.architecture,
                     config.layers.size()),
         "the tensors of that architecture only",
         "use the checkpoint of the text model, unmerged adapters left out"});
  }
  if (left_out > 0) {
    problems.push_back({checkpoint.path, fmt::format("{} more such tensors", left_out),
                        "every tensor as the config says", "mend the first ones first"});
  }
  return problems;
}

}  // namespace ashlar
