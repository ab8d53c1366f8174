// Float formats of files as f32, exactly.
#pragma once

#include <cstddef>
#include <span>

#include "base/dtype.h"

namespace ashlar {

// `bytes` hold out.size() values of F32, F16 or BF16, at any alignment; `offset` is added to each.
void ToFloats(DType dtype, std::span<const std::byte> bytes, float offset, std::span<float> out);

}  // namespace ashlar
