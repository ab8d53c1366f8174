// The whole plan as vLLM 0.33 would make it: for comparison, labelled so wherever it shows, and
// never carried out.
#pragma once

#include <string>
#include <vector>

#include "catalogue/blocks.h"
#include "catalogue/pools.h"
#include "catalogue/vllm.h"
#include "catalogue/vllm_assume.h"
#include "plan/plan.h"

namespace ashlar {

inline constexpr std::string_view kReferenceName = "vllm-0.33.0";
// Stands in every output.
inline constexpr std::string_view kReferenceLabel =
    "what vLLM 0.33.0 would choose; a reference catalogue, nothing of it is carried out";

// Layers of equal cache and geometry, with the backend that they would get.
struct ReferenceAttention {
  std::string name;  // as our plan calls the group
  LayerSpec layer;
  std::vector<int> layers;
  VllmChoice choice;
  int kernel_block_tokens = 0;  // 0: nothing is read from blocks
};

struct ReferencePlan {
  std::string model_name, platform_name, product;
  std::vector<ReferenceAttention> attention;
  ReferenceBlocks blocks;
  LayoutOutcome layout;
  ReferenceGrouping grouping;
  ReferencePool pool;
  Granularity units;
  std::string failed;  // the first step that has no answer: "backends", "blocks", ...; "" none
  std::string why;     // it has none: "CPU_MLA refuses 1920 tokens"
};

// Only without a device or with an unusable one is there no plan at all; a step without an answer
// ends it with what is known so far. Backends that the spec forces count when vLLM has one of that
// name.
Result<ReferencePlan> PlanLikeReference(const Spec& spec, const Platform& platform,
                                        const ModelConfig& model, const WeightFacts& weights,
                                        const VllmAssume& assume);

std::string ToText(const ReferencePlan& plan);
Json ToJson(const ReferencePlan& plan);

}  // namespace ashlar
