// The reference reads every GGUF type as the PyPI package gguf does, bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/mapped_file.h"
#include "conformance/fixture.h"
#include "support/tensor_float.h"
#include "support/tensor_weight.h"

namespace ashlar::testing {
namespace {

std::vector<float> Dequantize(DType type, std::span<const std::byte> bytes, int64_t count) {
  const WeightPart part{type, 1, bytes};
  const Weight weight = Reference().CreateWeight({&part, 1}, count, true).value();
  std::vector<float> values(static_cast<size_t>(count), kPoison);
  const int32_t id = 0;
  (void)Reference()
      .Embed(Tensor::Of(values.data(), DType::kF32, {1, count}), weight, &id, 1)
      .value();
  return values;
}

TEST(ReferenceDequantize, EqualsGgufBitForBit) {
  const MappedFile file =
      MappedFile::Open(ASHLAR_SOURCE_DIR "/tests/conformance/data/dequantize.bin").value();
  std::span<const std::byte> rest = file.bytes();
  const auto take = [&rest](size_t bytes) {
    const auto first = rest.first(bytes);
    rest = rest.subspan(bytes);
    return first;
  };
  std::set<DType> seen;
  while (!rest.empty()) {
    uint32_t head[2];
    std::memcpy(head, take(sizeof head).data(), sizeof head);
    const auto type = static_cast<DType>(head[0]);
    const int64_t count = int64_t{head[1]} * Info(type).elements;
    const auto blocks = take(size_t{head[1]} * static_cast<size_t>(Info(type).bytes));
    std::vector<float> want(static_cast<size_t>(count));
    std::memcpy(want.data(), take(want.size() * sizeof(float)).data(), want.size() * sizeof(float));
    EXPECT_TRUE(SameBits(Dequantize(type, blocks, count), want)) << Info(type).name;
    seen.insert(type);
  }
  EXPECT_EQ(seen, std::set<DType>(std::begin(kWeightTypes), std::end(kWeightTypes)));
}

// Every bit pattern of the two 16-bit types against arithmetic.
TEST(ReferenceDequantize, ReadsEvery16BitFloat) {
  std::vector<uint16_t> bits;
  for (int pattern = 0; pattern < 65536; ++pattern) bits.push_back(static_cast<uint16_t>(pattern));
  for (DType type : {DType::kF16, DType::kBF16}) {
    const std::vector<float> values = Dequantize(type, std::as_bytes(std::span(bits)), 65536);
    for (size_t i = 0; i < bits.size(); ++i) {
      const float want = Decode(type == DType::kF16 ? kHalf : kBf16, bits[i]);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(values[i])) << i;
      } else {
        ASSERT_EQ(std::signbit(values[i]), std::signbit(want)) << i;
        ASSERT_EQ(values[i], want) << Info(type).name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace ashlar::testing
