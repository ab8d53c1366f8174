// What two processes must agree on before one may use a block that the other wrote.
#pragma once

#include <string>

#include "plan/plan.h"

namespace ashlar {

// 16 hex digits over groups, geometry, types, block sizes, layout, rows and numerics class. Counts,
// free bytes, machine and model name stay out: two machines of different size agree.
std::string PlanHash(const Plan& plan);

}  // namespace ashlar
