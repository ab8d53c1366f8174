// Normal-like weights from a hash of tensor name and index; tests/model/make_goldens.py repeats it
// bit for bit, so that a golden needs no weights. Every value is exact in bf16.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar::testing_support {

inline float RoundToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000;
  return std::bit_cast<float>(bits);
}

inline std::vector<float> CounterWeights(std::string_view name, int64_t count) {
  uint64_t seed = 0xCBF29CE484222325;
  for (char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  double mean = has("norm") ? 1.0 : 0.0;
  double spread = 0.125;
  if (!has("norm") && name.ends_with("bias")) spread = 0.25;
  if (!has("norm") && !name.ends_with("bias") && (has("embed") || has("lm_head"))) spread = 1.0;
  std::vector<float> values;
  values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    uint64_t x = seed + (static_cast<uint64_t>(i) + 1) * 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    x ^= x >> 31;
    uint64_t total = (x & 0xFFFF) + ((x >> 16) & 0xFFFF) + ((x >> 32) & 0xFFFF) + (x >> 48);
    double normal = (static_cast<double>(total) / 65536.0 - 2.0) * 1.7320508075688772;
    values.push_back(RoundToBf16(static_cast<float>(normal * spread + mean)));
  }
  return values;
}

}  // namespace ashlar::testing_support
