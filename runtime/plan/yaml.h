// JSON values as YAML text for people: block style, arrays of scalars on one line.
#pragma once

#include <string>

#include "base/json.h"

namespace ashlar {

std::string YamlOf(const Json& value);

}  // namespace ashlar
