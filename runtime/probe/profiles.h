// Platforms that planning knows without a machine at hand.
#pragma once

#include <optional>
#include <string_view>

#include "probe/platform.h"

namespace ashlar {

std::optional<Platform> FindProfile(std::string_view name);

}  // namespace ashlar
