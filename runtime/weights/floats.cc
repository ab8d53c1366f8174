#include "weights/floats.h"

#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace ashlar {

void ToFloats(DType dtype, std::span<const std::byte> bytes, float offset, std::span<float> out) {
  const size_t width = static_cast<size_t>(Info(dtype).bytes);
  Check(bytes.size() == width * out.size(), "as many values as the caller has room for");
  for (size_t i = 0; i < out.size(); ++i) {
    const std::byte* at = bytes.data() + i * width;
    if (dtype == DType::kF32) {
      std::memcpy(&out[i], at, sizeof(float));
    } else {
      uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      Check(dtype == DType::kF16 || dtype == DType::kBF16, "a float format");
      out[i] = dtype == DType::kF16 ? HalfToFloat(bits) : BFloat16ToFloat(bits);
    }
    out[i] += offset;
  }
}

}  // namespace ashlar
