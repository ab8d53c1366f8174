// What was considered for one attention group, for a person.
#pragma once

#include <string>

#include "plan/plan.h"

namespace ashlar {

// "CUDA_PAGED", "HIP_PAGED (compile-verified)", "(op-driven)".
std::string BackendText(const AttentionGroup& attention);

// Lines of the rows that were tried before the choice with all reasons, and of those behind it in
// brief; without a choice all are in brief. `full`: every row with all reasons.
std::string CandidatesText(const AttentionGroup& attention, bool full);

}  // namespace ashlar
