// Shorthands for tests that load specs from text.
#pragma once

#include <string>
#include <string_view>

#include "spec/spec.h"

namespace ashlar {

// The report of a text that is refused, or "accepted".
inline std::string SpecReport(std::string_view text, const std::string& name = "m.yaml") {
  Result<Spec> spec = LoadSpec(text, name);
  return spec.ok() ? "accepted" : Text(spec.problems());
}

// `fields` below the one that a spec needs.
inline std::string WithDemo(std::string_view fields) {
  return "source: {builtin: demo}\n" + std::string(fields);
}

}  // namespace ashlar
