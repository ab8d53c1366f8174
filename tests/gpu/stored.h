// Values in one of the float types that tensors between ops have.
#pragma once

#include "gpu/cases.h"
#include "gpu/number.h"

namespace ashlar::gpu_test {

inline ashlar_dtype PickFloat(Random& random) {
  return random.Pick<ashlar_dtype>({ASHLAR_F32, ASHLAR_F16, ASHLAR_BF16, ASHLAR_BF16});
}

// How far rounding moves a value, as a share of it.
inline double RoundingStep(ashlar_dtype dtype) {
  return dtype == ASHLAR_F32 ? 0x1p-24 : dtype == ASHLAR_F16 ? 0x1p-11 : 0x1p-8;
}

// The nearest values that the type has.
inline std::vector<float> Rounded(ashlar_dtype dtype, std::vector<float> values) {
  for (float& value : values) {
    float stored;
    gpu_kernels::StoreAs(dtype, &stored, 0, value);
    value = gpu_kernels::LoadAs(dtype, &stored, 0);
  }
  return values;
}

// Such values on a side.
class Stored {
 public:
  Stored(const Side& side, ashlar_dtype dtype, const std::vector<float>& values)
      : dtype_(dtype),
        wide_(side, dtype == ASHLAR_F32 ? values : std::vector<float>(), false),
        narrow_(side, Narrow(dtype, values), false) {}
  void* data() const {
    return dtype_ == ASHLAR_F32 ? static_cast<void*>(wide_.data())
                                : static_cast<void*>(narrow_.data());
  }
  std::vector<float> Read() const {
    if (dtype_ == ASHLAR_F32) return wide_.Read();
    std::vector<float> values;
    for (uint16_t bits : narrow_.Read()) {
      values.push_back(dtype_ == ASHLAR_BF16 ? gpu_kernels::Load(gpu_kernels::BF16{bits})
                                             : gpu_kernels::Load(gpu_kernels::F16{bits}));
    }
    return values;
  }

 private:
  static std::vector<uint16_t> Narrow(ashlar_dtype dtype, const std::vector<float>& values) {
    std::vector<uint16_t> bits;
    if (dtype == ASHLAR_F32) return bits;
    for (float value : values) {
      bits.push_back(dtype == ASHLAR_BF16 ? gpu_kernels::Store<gpu_kernels::BF16>(value).bits
                                          : gpu_kernels::Store<gpu_kernels::F16>(value).bits);
    }
    return bits;
  }
  ashlar_dtype dtype_;
  Array<float> wide_;
  Array<uint16_t> narrow_;
};

}  // namespace ashlar::gpu_test
