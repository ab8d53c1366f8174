// Kubernetes quantities: "512Gi", "63500m", "64".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ashlar::hooks {

// Rounded down to a whole number. Empty when it is none that a node states.
std::optional<int64_t> ParseQuantity(std::string_view text);

}  // namespace ashlar::hooks
