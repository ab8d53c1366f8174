#include "levels.h"

#include <cmath>

namespace ashlar::cpu {
namespace {

TEST(Levels, TheBestIsSupportedAndPortableAlwaysIs) {
  EXPECT_TRUE(Supported(CpuLevel::kPortable));
  EXPECT_TRUE(Supported(BestLevel()));
}

TEST(Levels, NamesAreDistinct) {
  for (const LevelCase& a : LevelCases(true))
    for (const LevelCase& b : LevelCases(true))
      if (a.kernels != b.kernels) {
        EXPECT_STRNE(a.kernels->name, b.kernels->name);
      }
}

// A server CPU with AMX, as CPUID describes it under a Linux that grants tiles.
CpuWords AmxServer() {
  return {.one_c = 1u << 28 | 1u << 12 | 1u << 29,
          .seven_b = 1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31,
          .seven_c = 1u << 11,
          .seven_d = 1u << 22 | 1u << 24 | 1u << 25,
          .seven_one_a = 1u << 4 | 1u << 5,
          .saved_states = 0x600e7,
          .tiles_granted = true};
}

TEST(Levels, AmxNeedsEveryFeatureItsRegistersSavedAndTheGrant) {
  EXPECT_EQ(LevelsOf(AmxServer()).best, CpuLevel::kAmx);
  for (int bit : {22, 24, 25}) {
    CpuWords without = AmxServer();
    without.seven_d &= ~(1u << bit);
    EXPECT_EQ(LevelsOf(without).best, CpuLevel::kAvx512Bf16) << bit;
  }
  for (uint64_t state : {0x20000, 0x40000}) {
    CpuWords without = AmxServer();
    without.saved_states &= ~state;
    EXPECT_EQ(LevelsOf(without).best, CpuLevel::kAvx512Bf16) << state;
  }
  CpuWords refused = AmxServer();
  refused.tiles_granted = false;
  EXPECT_EQ(LevelsOf(refused).best, CpuLevel::kAvx512Bf16);
}

TEST(Levels, RegistersThatAreNotSavedAreNotUsed) {
  CpuWords words = AmxServer();
  words.saved_states = 0x7;
  EXPECT_EQ(LevelsOf(words).best, CpuLevel::kAvx2Vnni);
  words.saved_states = 0x3;
  EXPECT_EQ(LevelsOf(words).best, CpuLevel::kPortable);
  EXPECT_EQ(LevelsOf({}).best, CpuLevel::kPortable);
}

TEST(Levels, WideRegistersWithoutDotProductsYieldToNarrowOnesWithThem) {
  CpuWords words = AmxServer();
  words.seven_c = 0;
  EXPECT_EQ(LevelsOf(words).best, CpuLevel::kAvx2Vnni);
  words.seven_one_a = 0;
  EXPECT_EQ(LevelsOf(words).best, CpuLevel::kAvx512);
}

class RowKernels : public LevelTest {
 protected:
  const KernelTable& kernels() const { return device_.kernels; }
};

TEST_P(RowKernels, SiluAndGeluStayWithinTheirError) {
  for (int64_t n : {1, 15, 16, 17, 1000}) {
    std::vector<float> gate = Normals(n, 10), up(n, 1.0f), out(n);
    gate[0] = -200;
    kernels().silu_row(out.data(), gate.data(), up.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const double x = gate[i];
      EXPECT_NEAR(out[i], x / (1 + std::exp(-x)), 1e-6 + 1e-6 * std::fabs(x)) << x;
    }
    kernels().gelu_tanh_row(out.data(), gate.data(), up.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const double x = gate[i];
      const double want =
          0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
      EXPECT_NEAR(out[i], want, 1e-6 + 2e-6 * std::fabs(x)) << x;
    }
  }
}

// silu(x) = x / (1 + e^-x): for x far below zero the error of e^-x is that of the result.
TEST_P(RowKernels, ExponentialIsWithinTwoUlp) {
  std::vector<float> gate, up(4096, 1.0f), out(4096);
  for (int i = 0; i < 4096; ++i) gate.push_back(-20.0f - 60.0f * static_cast<float>(i) / 4096);
  kernels().silu_row(out.data(), gate.data(), up.data(), 4096);
  for (int i = 0; i < 4096; ++i) {
    const double exact = std::exp(-double{gate[i]});
    const double measured = gate[i] / double{out[i]} - 1;
    // Two for the exponential, one for the sum and one for the quotient.
    EXPECT_NEAR(measured / exact, 1, 4 * 0x1p-23) << gate[i];
  }
}

TEST_P(RowKernels, InfiniteGatesGiveTheLimits) {
  std::vector<float> gate(16), up(16, 2.0f), out(16);
  gate[0] = INFINITY, gate[1] = -INFINITY, gate[2] = NAN;
  kernels().silu_row(out.data(), gate.data(), up.data(), 16);
  EXPECT_EQ(out[0], INFINITY);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_EQ(out[3], 0.0f);
}

TEST_P(RowKernels, ConversionsKeepTailsAndNeighbours) {
  for (ashlar_dtype dtype : {ASHLAR_F32, ASHLAR_F16, ASHLAR_BF16}) {
    const int64_t bytes = dtype == ASHLAR_F32 ? 4 : 2;
    for (int64_t n : {1, 7, 16, 31, 64}) {
      std::vector<float> x = Normals(n), back(n + 1, 7.0f);
      std::vector<uint8_t> stored(n * bytes + 8, 0xee);
      kernels().from_floats(stored.data(), dtype, x.data(), n);
      for (int64_t i = n * bytes; i < n * bytes + 8; ++i) EXPECT_EQ(stored[i], 0xee);
      kernels().to_floats(back.data(), stored.data(), dtype, n);
      EXPECT_EQ(back[n], 7.0f);
      const double step = dtype == ASHLAR_F32 ? 0 : dtype == ASHLAR_F16 ? 0x1p-11 : 0x1p-8;
      for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(back[i], x[i], std::fabs(x[i]) * step + 1e-7);
    }
  }
}

TEST_P(RowKernels, QuantizedRowsAreWithinHalfAStep) {
  std::vector<float> x = Normals(96);
  std::fill(x.begin() + 32, x.begin() + 64, 0.0f);
  std::vector<int8_t> codes(96);
  std::vector<float> scale(3), scaled_sum(3);
  std::vector<int32_t> half_sum(6);
  kernels().quantize_row(x.data(), 96, codes.data(), scale.data(), scaled_sum.data(),
                         half_sum.data());
  for (int b = 0; b < 3; ++b) {
    int sums[2] = {};
    for (int i = 0; i < 32; ++i) {
      EXPECT_NEAR(codes[32 * b + i] * scale[b], x[32 * b + i], scale[b] * 0.5001f);
      sums[i / 16] += codes[32 * b + i];
    }
    EXPECT_EQ(half_sum[2 * b], sums[0]);
    EXPECT_EQ(half_sum[2 * b + 1], sums[1]);
    EXPECT_FLOAT_EQ(scaled_sum[b], scale[b] * (sums[0] + sums[1]));
  }
}

ASHLAR_LEVEL_SUITE(RowKernels, false);

}  // namespace
}  // namespace ashlar::cpu
