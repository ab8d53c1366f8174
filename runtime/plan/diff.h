// What changed between two plans, sorted by who must care.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace ashlar {

struct PlanChange {
  enum class Class {
    kContract,  // peers and stored blocks: layout, geometry, block sizes, types
    kChoice,    // another kernel runs, or a candidate's standing changed
    kAmount,    // counts, bytes and names of machines
  };
  Class kind;
  std::string path;      // "kvGroups[full_attention].blockSize"
  std::string from, to;  // compact JSON; "" when it is not there
};
std::string_view Name(PlanChange::Class kind);  // contract, choice, amount

// Groups are matched by name, candidates by backend; the order of a plan's members is kept.
std::vector<PlanChange> DiffPlans(const Json& from, const Json& to);

}  // namespace ashlar
