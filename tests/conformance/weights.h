// Weights as a test holds them: parts with their bytes, the same on every device.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "conformance/fixture.h"
#include "support/tensor_weight.h"

namespace ashlar::testing {

// A stack of random parts. The bytes begin one past an aligned address, as a file's may.
class RandomStack {
 public:
  RandomStack(std::vector<DType> types, std::vector<int64_t> rows, int64_t cols, Random& random)
      : types_(std::move(types)),
        rows_(std::move(rows)),
        cols_(cols),
        gathered_(random.Chance(0.3)) {
    for (size_t i = 0; i < types_.size(); ++i) {
      bytes_.push_back(RandomWeight(types_[i], rows_[i], cols, random));
      bytes_.back().insert(bytes_.back().begin(), std::byte{0xff});
    }
  }

  std::vector<WeightPart> parts() const {
    std::vector<WeightPart> parts;
    for (size_t i = 0; i < types_.size(); ++i) {
      parts.push_back({types_[i], rows_[i], std::span(bytes_[i]).subspan(1)});
    }
    return parts;
  }
  int64_t cols() const { return cols_; }
  // Whether matmul gets a weight that embed may read too, as a tied head is.
  bool gathered() const { return gathered_; }
  int64_t rows() const {
    int64_t total = 0;
    for (int64_t rows : rows_) total += rows;
    return total;
  }
  DType type_of_row(int64_t row) const {
    size_t part = 0;
    while (row >= rows_[part]) row -= rows_[part++];
    return types_[part];
  }
  std::string text() const {
    std::string text;
    for (size_t i = 0; i < types_.size(); ++i) {
      text += fmt::format("{}{}x{}", i > 0 ? "+" : "", Info(types_[i]).name, rows_[i]);
    }
    return text + fmt::format(" cols {}{}", cols_, gathered_ ? " gathered" : "");
  }

  // All rows as floats, as the reference reads them.
  std::vector<float> Floats() const {
    const Device& reference = Reference();
    const Weight weight = reference.CreateWeight(parts(), cols_, true).value();
    std::vector<float> values(static_cast<size_t>(rows() * cols_));
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < rows(); ++id) ids.push_back(id);
    const Tensor out = Tensor::Of(values.data(), DType::kF32, {rows(), cols_});
    (void)reference.Embed(out, weight, ids.data(), 1).value();
    return values;
  }

 private:
  std::vector<DType> types_;
  std::vector<int64_t> rows_;
  int64_t cols_;
  bool gathered_;
  std::vector<std::vector<std::byte>> bytes_;
};

// How far a stored weight may lie from the file's, as a share of it: a device keeps quantised
// weights as bfloat16, within 2^-9; host plugins keep what the file says.
inline double StorageStep(const Plugin& plugin, DType type) {
  return plugin.memory() != "host" && Info(type).elements > 1 ? 0x1p-8 : 0;
}

inline double Norm(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(sum);
}

inline double Largest(const float* x, int64_t n) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::fmax(largest, std::fabs(double{x[i]}));
  return largest;
}

// x [m, cols] times the stack on a device; the output is poisoned before and guarded.
inline std::vector<float> RunMatmul(const Device& device, const RandomStack& stack, int64_t m,
                                    const std::vector<float>& x, const std::vector<float>& bias,
                                    bool back_guard) {
  const Weight weight = device.CreateWeight(stack.parts(), stack.cols(), stack.gathered()).value();
  const Guarded<float> in(device, x, back_guard);
  const Guarded<float> add(device, bias, back_guard);
  const Guarded<float> out(
      device, std::vector<float>(static_cast<size_t>(m * stack.rows()), kPoison), back_guard);
  const Tensor bias_tensor =
      bias.empty() ? Tensor() : Tensor::Of(add.data(), DType::kF32, {stack.rows()});
  const Status ran =
      device.Matmul(Tensor::Of(out.data(), DType::kF32, {m, stack.rows()}),
                    Tensor::Of(in.data(), DType::kF32, {m, stack.cols()}), weight, bias_tensor);
  if (!ran.ok()) ADD_FAILURE() << stack.text() << ": " << Text(ran.problems());
  EXPECT_TRUE(SameBits(in.Read("x"), x)) << "matmul changed its input";
  return out.Read("out");
}

}  // namespace ashlar::testing
