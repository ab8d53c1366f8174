#pragma once

#include <cstdint>

namespace ashlar::reference {

// RMS norm of one run of `cols` values; out may be x.
void NormRow(const float* x, const float* weight, float eps, int64_t cols, float* out);

}  // namespace ashlar::reference
