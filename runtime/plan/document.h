// A plan as a file: what `ashlar plan -o json` or `-o yaml` printed, or /status shows.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace ashlar {

// At most 4 MiB, JSON or YAML; it must hold the members of a plan that others compare. One without
// a layout is read as "unstated" when every block is one run of bytes, and refused otherwise.
Result<Json> ReadPlanDocument(const std::string& path);
Result<Json> ParsePlanDocument(std::string_view text, const std::string& name);

}  // namespace ashlar
