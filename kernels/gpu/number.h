// The storage types of kernels/gpu: 16-bit and 8-bit floats as bit patterns, and elements whose
// type is known at run time. Rounding is to nearest even everywhere.
#pragma once

#include <cmath>
#include <cstring>
#include <type_traits>

#include "ashlar_plugin.h"
#include "gpu.h"

namespace ashlar::gpu_kernels {

struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};
// 4 bits of exponent, 3 of fraction, no infinities.
struct F8 {
  uint8_t bits;
};

GPU_BOTH float FromBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
GPU_BOTH uint32_t ToBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

GPU_BOTH float Load(float value) { return value; }
GPU_BOTH float Load(BF16 value) { return FromBits(static_cast<uint32_t>(value.bits) << 16); }
GPU_BOTH float Load(F16 value) {
#if defined(GPU_PTX)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
#elif defined(GPU_GCN)
  _Float16 half;
  memcpy(&half, &value, sizeof half);
  return static_cast<float>(half);
#else
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fffu) << 13;
  // Infinities and NaNs keep an exponent of all ones; the rest is rebased by an exact product.
  if (magnitude >= 0x0f800000u) return FromBits(sign | 0x7f800000u | (magnitude & 0x7fffffu));
  return FromBits(sign | ToBits(FromBits(magnitude) * 0x1p112f));
#endif
}

GPU_BOTH float Load(F8 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x80u) << 24;
  const uint32_t magnitude = value.bits & 0x7fu;
  if (magnitude == 0x7fu) return FromBits(sign | 0x7fc00000u);
  return FromBits(sign | ToBits(FromBits(magnitude << 20) * 0x1p120f));
}

template <class T>
GPU_BOTH T Store(float value);
template <>
GPU_BOTH float Store<float>(float value) {
  return value;
}
template <>
GPU_BOTH BF16 Store<BF16>(float value) {
  const uint32_t bits = ToBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {  // a NaN stays one
    return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
  }
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
template <>
GPU_BOTH F16 Store<F16>(float value) {
#if defined(GPU_PTX)
  F16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
  return half;
#elif defined(GPU_GCN)
  const _Float16 half = static_cast<_Float16>(value);
  F16 stored;
  memcpy(&stored, &half, sizeof half);
  return stored;
#else
  const uint32_t bits = ToBits(value);
  const uint32_t sign = bits >> 16 & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {  // a subnormal: the adder rounds it into the low bits
    const uint32_t sum = ToBits(FromBits(magnitude) + 0.5f);
    return {static_cast<uint16_t>(sign | (sum - 0x3f000000u))};
  }
  magnitude += 0xfffu + (magnitude >> 13 & 1u);
  return {static_cast<uint16_t>(sign | ((magnitude - 0x38000000u) >> 13))};
#endif
}

// Values past the largest become the largest.
template <>
GPU_BOTH F8 Store<F8>(float value) {
  constexpr uint32_t kLargest = 0x43e00000u, kLeastNormal = 0x3c800000u;  // 448 and 2^-6
  const uint32_t bits = ToBits(value);
  const uint32_t sign = bits >> 24 & 0x80u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint8_t>(sign | 0x7fu)};
  if (magnitude > kLargest) magnitude = kLargest;
  if (magnitude < kLeastNormal) {  // the adder rounds it into the low bits
    const uint32_t sum = ToBits(FromBits(magnitude) + 16384.0f);
    return {static_cast<uint8_t>(sign | (sum - 0x46800000u))};
  }
  magnitude += 0x7ffffu + (magnitude >> 20 & 1u);
  return {static_cast<uint8_t>(sign | ((magnitude - 0x3c000000u) >> 20))};
}

// Two values as one word, the first in the low half.
template <class T>
GPU_BOTH uint32_t Pack(float low, float high) {
#if defined(GPU_PTX)
  uint32_t word;
  if constexpr (std::is_same_v<T, BF16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
#else
  return static_cast<uint32_t>(Store<T>(low).bits) | static_cast<uint32_t>(Store<T>(high).bits)
                                                         << 16;
#endif
}

GPU_BOTH uint16_t PackF8(float low, float high) {
#if defined(GPU_PTX) && __CUDA_ARCH__ >= 890
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return static_cast<uint16_t>(Store<F8>(low).bits | Store<F8>(high).bits << 8);
#endif
}

// Eight F8 values, which move at once.
struct alignas(8) EightF8 {
  uint32_t word[2];
};
// Of eight values, each times `factor`.
GPU_DEVICE EightF8 PackEightF8(const float* from, float factor) {
  uint16_t pairs[4];
  for (int i = 0; i < 4; ++i) pairs[i] = PackF8(from[2 * i] * factor, from[2 * i + 1] * factor);
  EightF8 eight;
  memcpy(&eight, pairs, sizeof eight);
  return eight;
}

// Two BF16, the halves of a word, times a power of two.
GPU_BOTH uint32_t TimesPower(uint32_t pair, float power) {
  const uint32_t both = (ToBits(power) & 0xffff0000u) | ToBits(power) >> 16;
#if defined(GPU_PTX)
  uint32_t product;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(pair), "r"(both), "r"(0x80008000u));
  return product;
#else
  return Pack<BF16>(FromBits(pair << 16) * FromBits(both << 16),
                    FromBits(pair & 0xffff0000u) * FromBits(both << 16));
#endif
}

// The larger magnitude of each half of two words of BF16, of any sign; NaNs are passed over.
GPU_BOTH uint32_t LargerBF16(uint32_t a, uint32_t b) {
#if defined(GPU_PTX)
  uint32_t larger;
  asm("max.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
  return larger;
#else
  const auto half = [](uint32_t x, uint32_t y) {
    x &= 0x7fffu, y &= 0x7fffu;
    return x > 0x7f80u ? y : y > 0x7f80u ? x : x > y ? x : y;
  };
  return half(a, b) | half(a >> 16, b >> 16) << 16;
#endif
}

// The four F8 values of a word as F16, which holds them exactly: the first two in `low`.
GPU_BOTH void Widen(uint32_t word, uint32_t& low, uint32_t& high) {
#if defined(GPU_PTX) && __CUDA_ARCH__ >= 890
  asm("{.reg .b16 first, second;\n"
      "mov.b32 {first, second}, %2;\n"
      "cvt.rn.f16x2.e4m3x2 %0, first;\n"
      "cvt.rn.f16x2.e4m3x2 %1, second;}\n"
      : "=r"(low), "=r"(high)
      : "r"(word));
#else
  const auto value = [&](int byte) { return Load(F8{static_cast<uint8_t>(word >> 8 * byte)}); };
  low = Pack<F16>(value(0), value(1));
  high = Pack<F16>(value(2), value(3));
#endif
}

// The type that values stored as T are multiplied in.
template <class T>
using Multiplied = std::conditional_t<std::is_same_v<T, F8>, F16, T>;

// ---------------------------------------------------------------- types known at run time

// Of caches, as ASHLAR_DTYPE_BITs.
inline constexpr uint32_t kKvDtypes =
    ASHLAR_DTYPE_BIT(ASHLAR_F16) | ASHLAR_DTYPE_BIT(ASHLAR_BF16) | ASHLAR_DTYPE_BIT(ASHLAR_F8_E4M3);

GPU_BOTH int ElementBytes(ashlar_dtype dtype) {
  return dtype == ASHLAR_F32 ? 4 : dtype == ASHLAR_F8_E4M3 ? 1 : 2;
}

GPU_DEVICE float LoadAs(ashlar_dtype dtype, const void* data, int64_t index) {
  if (dtype == ASHLAR_F32) return static_cast<const float*>(data)[index];
  if (dtype == ASHLAR_BF16) return Load(static_cast<const BF16*>(data)[index]);
  if (dtype == ASHLAR_F8_E4M3) return Load(static_cast<const F8*>(data)[index]);
  return Load(static_cast<const F16*>(data)[index]);
}
GPU_DEVICE void StoreAs(ashlar_dtype dtype, void* data, int64_t index, float value) {
  if (dtype == ASHLAR_F32) {
    static_cast<float*>(data)[index] = value;
  } else if (dtype == ASHLAR_BF16) {
    static_cast<BF16*>(data)[index] = Store<BF16>(value);
  } else if (dtype == ASHLAR_F8_E4M3) {
    static_cast<F8*>(data)[index] = Store<F8>(value);
  } else {
    static_cast<F16*>(data)[index] = Store<F16>(value);
  }
}

// Eight 16-bit values of type `dtype` become T.
template <class T>
GPU_DEVICE void Convert(ashlar_dtype dtype, gpu::Vector& values) {
  using Other = std::conditional_t<std::is_same_v<T, BF16>, F16, BF16>;
  if (dtype == (std::is_same_v<T, BF16> ? ASHLAR_BF16 : ASHLAR_F16)) return;
  for (uint32_t& word : values.word) {
    word = Pack<T>(Load(Other{static_cast<uint16_t>(word)}),
                   Load(Other{static_cast<uint16_t>(word >> 16)}));
  }
}

// Two neighbours, the first of even index. Unless they lie aligned to both, `aligned` is false.
GPU_DEVICE void StorePair(ashlar_dtype dtype, void* data, int64_t index, float low, float high,
                          bool aligned) {
  if (!aligned || dtype == ASHLAR_F32) {
    StoreAs(dtype, data, index, low);
    StoreAs(dtype, data, index + 1, high);
  } else if (dtype == ASHLAR_F8_E4M3) {
    static_cast<uint16_t*>(data)[index / 2] = PackF8(low, high);
  } else {
    static_cast<uint32_t*>(data)[index / 2] =
        dtype == ASHLAR_BF16 ? Pack<BF16>(low, high) : Pack<F16>(low, high);
  }
}

// Eight values from a 16-byte aligned place (f32: two accesses), as T.
template <class T>
GPU_DEVICE gpu::Vector LoadEight(ashlar_dtype dtype, const void* data, int64_t index) {
  constexpr ashlar_dtype kSame = std::is_same_v<T, BF16> ? ASHLAR_BF16 : ASHLAR_F16;
  if (dtype == kSame) {
    return *reinterpret_cast<const gpu::Vector*>(static_cast<const T*>(data) + index);
  }
  gpu::Vector packed;
  if (dtype == ASHLAR_F32) {
    const auto* from = reinterpret_cast<const gpu::Four*>(static_cast<const float*>(data) + index);
    const gpu::Four low = from[0], high = from[1];
    for (int i = 0; i < 2; ++i) {
      packed.word[i] = Pack<T>(low.value[2 * i], low.value[2 * i + 1]);
      packed.word[i + 2] = Pack<T>(high.value[2 * i], high.value[2 * i + 1]);
    }
    return packed;
  }
  for (int i = 0; i < 4; ++i) {
    packed.word[i] =
        Pack<T>(LoadAs(dtype, data, index + 2 * i), LoadAs(dtype, data, index + 2 * i + 1));
  }
  return packed;
}

struct alignas(16) FourFloats {
  float value[4];
};

// The eight 16-bit values of a vector.
GPU_DEVICE void UnpackFloats(ashlar_dtype dtype, const gpu::Vector& packed, float* to) {
  for (int i = 0; i < 8; ++i) {
    const auto bits = static_cast<uint16_t>(packed.word[i / 2] >> (i % 2 * 16));
    to[i] = dtype == ASHLAR_BF16 ? Load(BF16{bits}) : Load(F16{bits});
  }
}

// Whether every row of a matrix is whole groups of eight values, each aligned to 16 bytes.
inline bool HasEights(const ashlar_tensor& t) {
  return t.shape[1] % 8 == 0 && t.stride[0] % 16 == 0 &&
         reinterpret_cast<uintptr_t>(t.data) % 16 == 0;
}
// Eight values from or to a place that is aligned to 16 bytes.
GPU_DEVICE void LoadFloats(ashlar_dtype dtype, const void* data, int64_t index, float* to) {
  if (dtype == ASHLAR_F32) {
    const auto* from = reinterpret_cast<const FourFloats*>(static_cast<const float*>(data) + index);
    const FourFloats low = from[0], high = from[1];
    for (int i = 0; i < 4; ++i) to[i] = low.value[i], to[4 + i] = high.value[i];
    return;
  }
  UnpackFloats(
      dtype, *reinterpret_cast<const gpu::Vector*>(static_cast<const uint16_t*>(data) + index), to);
}
GPU_DEVICE void StoreFloats(ashlar_dtype dtype, void* data, int64_t index, const float* from) {
  if (dtype == ASHLAR_F32) {
    auto* to = reinterpret_cast<FourFloats*>(static_cast<float*>(data) + index);
    to[0] = {{from[0], from[1], from[2], from[3]}};
    to[1] = {{from[4], from[5], from[6], from[7]}};
    return;
  }
  gpu::Vector packed;
  for (int i = 0; i < 4; ++i) {
    packed.word[i] = dtype == ASHLAR_BF16 ? Pack<BF16>(from[2 * i], from[2 * i + 1])
                                          : Pack<F16>(from[2 * i], from[2 * i + 1]);
  }
  *reinterpret_cast<gpu::Vector*>(static_cast<uint16_t*>(data) + index) = packed;
}

inline constexpr float kLargestF8 = 448;

// Four F8 values, the bytes of a word, as two words of two BF16, which hold them exactly.
GPU_DEVICE void WidenToBF16(uint32_t four, uint32_t* to) {
#if defined(GPU_PTX)
  // Exponent and fraction move to where BF16 has them; a product corrects the exponent's bias, that
  // of subnormals too.
  constexpr uint32_t kZeros = 0x80008000u, kPower = 0x7b807b80u;  // -0 and 2^120, twice
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    uint32_t spread;  // the bytes as the high ones of two halves
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(spread) : "r"(four), "r"(i == 0 ? 0x1404 : 0x3424));
    const uint32_t moved = (spread & 0x80008000u) | (spread >> 4 & 0x07f007f0u);
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(to[i]) : "r"(moved), "r"(kPower), "r"(kZeros));
  }
#else
  for (int i = 0; i < 2; ++i) {
    to[i] = Pack<BF16>(Load(F8{static_cast<uint8_t>(four >> 16 * i)}),
                       Load(F8{static_cast<uint8_t>(four >> (16 * i + 8))}));
  }
#endif
}

}  // namespace ashlar::gpu_kernels
