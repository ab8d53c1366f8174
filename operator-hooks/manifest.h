// A YAML manifest as JSON, read strictly: the same values for every YAML reader, or a Problem.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace ashlar::hooks {

// `name` stands for the file in messages.
Result<Json> ManifestToJson(std::string_view text, const std::string& name);

}  // namespace ashlar::hooks
