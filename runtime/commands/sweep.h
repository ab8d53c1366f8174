// One spec planned on every profile inside the binary.
#pragma once

#include <string>

#include "source.h"

namespace ashlar {

// A line a KV group of each profile, or the first refusal where there is no plan.
std::string SweepTable(const Spec& spec, const ModelSource& source);

}  // namespace ashlar
