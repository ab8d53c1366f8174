// The version that this binary states.
#pragma once

namespace ashlar {

inline constexpr const char* kVersion = ASHLAR_VERSION;

}  // namespace ashlar
