// Rules that hold between fields, each stated once.
#pragma once

#include <functional>
#include <string>

#include "spec/spec.h"

namespace ashlar {

// A broken rule and the field it is told at.
struct Conflict {
  std::string field;
  std::string found, allowed, next;
};

// Judges only fields that stand in the document (spec.origins) and could be read.
std::vector<Conflict> CrossCheck(const Spec& spec);

}  // namespace ashlar
