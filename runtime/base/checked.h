// Arithmetic on sizes that come from files: nothing wraps, an overflow is an empty optional.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>

namespace ashlar {

template <std::integral T>
std::optional<T> CheckedAdd(T a, T b) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
std::optional<T> CheckedMul(T a, T b) {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Product of the extents; empty when one is negative or the product does not fit.
inline std::optional<int64_t> CheckedProduct(std::span<const int64_t> extents) {
  int64_t product = 1;
  for (int64_t extent : extents) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

template <std::integral T>
constexpr T CeilDiv(T a, T b) {
  return (a + b - 1) / b;
}

template <std::integral T>
constexpr T RoundUp(T a, T multiple) {
  return CeilDiv(a, multiple) * multiple;
}

}  // namespace ashlar
