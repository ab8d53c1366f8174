// What vLLM 0.33 would choose beside what our plan chooses.
#pragma once

#include <string>
#include <vector>

#include "catalogue/vllm_assume.h"
#include "plan/plan.h"

namespace ashlar {

// A line for each attention group that has a backend on either side, one for the block size, and
// one with the first problem when there is no plan of ours. `told` is the backend that vLLM is told
// to use, or "".
Result<std::vector<std::string>> CompareWithVllm(const Spec& spec, const Platform& platform,
                                                 const ModelConfig& model,
                                                 const WeightFacts& weights,
                                                 const VllmAssume& assume, const std::string& told);

}  // namespace ashlar
