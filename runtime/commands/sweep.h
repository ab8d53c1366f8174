// One spec planned on every profile inside the binary.
#pragma once

#include <string>

#include "catalogue/vllm_assume.h"
#include "source.h"

namespace ashlar {

// A line a KV group of each profile, or the first refusal where there is no plan.
std::string SweepTable(const Spec& spec, const ModelSource& source);

// The same as vLLM would choose, and labelled so.
std::string ReferenceSweepTable(const Spec& spec, const ModelSource& source,
                                const VllmAssume& assume);

}  // namespace ashlar
