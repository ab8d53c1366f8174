// What would have to be said otherwise for a refused row to be the choice.
#pragma once

#include "plan/plan.h"

namespace ashlar {

// Fills Candidate::chosen_with of every refused candidate that would have been tried before the row
// that was chosen. A change is found by planning with it, so that following it works; it holds no
// part that is not needed. What no field of the spec can change (a head size, a missing plugin)
// leaves it empty. Arguments are those that `plan` was made from.
void FindChanges(Plan& plan, const Spec& spec, const Platform& platform, const ModelConfig& model,
                 const WeightFacts& weights);

}  // namespace ashlar
