#include "source.h"

#include <fmt/format.h>

#include <filesystem>

namespace ashlar {
namespace {

Problems GeometryDifferences(const Spec& spec, const ModelConfig& stated,
                             const ModelConfig& found) {
  Problems problems;
  auto compare = [&](std::string_view what, int64_t in_spec, int64_t in_file) {
    if (in_spec == in_file) return;
    problems.push_back({spec.origins.Place("source.config"), fmt::format("{} {}", what, in_spec),
                        fmt::format("{}, as the checkpoint has it", in_file),
                        "correct source.config, or remove it"});
  };
  compare("layers", static_cast<int64_t>(stated.layers.size()),
          static_cast<int64_t>(found.layers.size()));
  compare("hidden size", stated.hidden, found.hidden);
  compare("vocabulary size", stated.vocab, found.vocab);
  for (size_t i = 0; i < std::min(stated.layers.size(), found.layers.size()) && problems.empty();
       ++i) {
    const LayerSpec &a = stated.layers[i], &b = found.layers[i];
    if (a.kind != b.kind) {
      problems.push_back({spec.origins.Place("source.config"),
                          fmt::format("layer {} is {}", i, Name(a.kind)),
                          fmt::format("{}, as the checkpoint has it", Name(b.kind)),
                          "correct source.config, or remove it"});
    }
    compare(fmt::format("layer {} query heads", i), a.heads, b.heads);
    compare(fmt::format("layer {} KV heads", i), a.kv_heads, b.kv_heads);
    compare(fmt::format("layer {} head size", i), a.head_dim, b.head_dim);
    compare(fmt::format("layer {} window", i), a.window, b.window);
  }
  return problems;
}

}  // namespace

std::string ServedName(const Spec& spec) {
  if (!spec.name.empty()) return spec.name;
  if (!spec.source.builtin.empty()) return spec.source.builtin;
  std::filesystem::path path(spec.source.path);
  if (!path.has_filename()) path = path.parent_path();  // "/models/name/"
  return path.filename() == "config.json" ? path.parent_path().filename().string()
                                          : path.stem().string();
}

Result<ModelSource> OpenSource(const Spec& spec, bool plan_only) {
  std::optional<ModelConfig> stated;
  if (spec.source.config) {
    Result<ModelConfig> config =
        ReadModelConfig(*spec.source.config, spec.origins.Place("source.config"));
    if (!config) return config.problems();
    stated = std::move(*config);
  }
  Result<Checkpoint> checkpoint = spec.source.builtin.empty()
                                      ? OpenCheckpoint(spec.source.path)
                                      : OpenBuiltinCheckpoint(spec.source.builtin);
  if (!checkpoint) {
    if (!stated || !plan_only) return checkpoint.problems();
    return ModelSource{std::nullopt, *stated, WeightFacts{stated->weight_bytes()}};
  }
  Result<ModelConfig> config = ReadModelConfig(*checkpoint);
  if (!config) return config.problems();
  if (stated) {
    Problems differences = GeometryDifferences(spec, *stated, *config);
    if (!differences.empty()) return differences;
  }
  bool has_weights = checkpoint->format != Checkpoint::Format::kConfigOnly;
  WeightFacts facts{has_weights ? checkpoint->total_bytes() : config->weight_bytes()};
  return ModelSource{std::move(*checkpoint), std::move(*config), facts};
}

}  // namespace ashlar
