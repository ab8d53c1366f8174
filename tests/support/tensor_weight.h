// Random weights in every storage format, with scales such as trained weights have.
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/dtype.h"
#include "support/tensor_float.h"
#include "support/tensor_random.h"

namespace ashlar::testing {

inline constexpr DType kWeightTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,
                                         DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                         DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

namespace internal {

struct QuantFormat {
  DType type;
  int scale_at, min_at;  // bytes in the block; -1: none
  double step;           // of a typical d
  double min_over_d;     // a minimum that centres the values
};
// For the K types d is multiplied by a 6-bit (Q6_K: 8-bit) scale, and min by another.
inline constexpr QuantFormat kQuantFormats[] = {
    {DType::kQ8_0, 0, -1, 0.0008, 0},    {DType::kQ4_0, 0, -1, 0.013, 0},
    {DType::kQ4_1, 0, 2, 0.013, -7.5},   {DType::kQ5_0, 0, -1, 0.0065, 0},
    {DType::kQ5_1, 0, 2, 0.0065, -15.5}, {DType::kQ4_K, 0, 2, 0.0004, 7.5},
    {DType::kQ5_K, 0, 2, 0.0002, 15.5},  {DType::kQ6_K, 208, -1, 0.00005, 0},
};

}  // namespace internal

// `rows` * `cols` values; cols is a multiple of the type's block.
inline std::vector<std::byte> RandomWeight(DType type, int64_t rows, int64_t cols, Random& random) {
  std::vector<std::byte> bytes(static_cast<size_t>(StorageBytes(type, rows * cols).value()));
  const DTypeInfo& info = Info(type);
  if (info.elements == 1) {
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(info.bytes)) {
      Store(type, random.Normal(0.05), bytes.data() + at);
    }
    return bytes;
  }
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Int(0, 255));
  for (const internal::QuantFormat& format : internal::kQuantFormats) {
    if (format.type != type) continue;
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(info.bytes)) {
      const double sign = format.min_at < 0 && random.Chance(0.5) ? -1 : 1;
      const double d = sign * format.step * random.Uniform(0.3, 2);
      Store(DType::kF16, static_cast<float>(d), bytes.data() + at + format.scale_at);
      if (format.min_at < 0) continue;
      const double min = format.min_over_d * d * random.Uniform(0.9, 1.1);
      Store(DType::kF16, static_cast<float>(min), bytes.data() + at + format.min_at);
    }
  }
  return bytes;
}

}  // namespace ashlar::testing
