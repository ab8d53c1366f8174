// Seeded random values for tensors. The same seed gives the same values on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace ashlar::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // Inclusive.
  int64_t Int(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(double probability) { return Unit() < probability; }
  double Unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  double Uniform(double low, double high) { return low + (high - low) * Unit(); }
  // Box-Muller.
  float Normal(double deviation = 1) {
    const double radius = std::sqrt(-2 * std::log(1 - Unit()));
    return static_cast<float>(deviation * radius * std::cos(6.283185307179586 * Unit()));
  }
  std::vector<float> Normals(int64_t count, double deviation = 1) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = Normal(deviation);
    return values;
  }
  template <class T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(Int(0, static_cast<int64_t>(from.size()) - 1))];
  }
  template <class T>
  void Shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[static_cast<size_t>(Int(0, static_cast<int64_t>(i) - 1))]);
    }
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace ashlar::testing
