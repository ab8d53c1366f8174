// The emulated tiles against the meaning that tiles.h states; where this CPU has AMX, the
// hardware's kernels against the emulated ones, bit for bit.
#include <cmath>

#include "half.h"
#include "levels.h"
#include "ops.h"
#include "weight.h"

#define ASHLAR_CPU_LEVEL amx_emulated_test
#define ASHLAR_CPU_TILES "tiles_emulated.h"
#include "tiles.h"

namespace ashlar::cpu {
namespace {

using namespace amx_emulated_test;

TileConfig Config(int rows, int x_bytes) {
  TileConfig config;
  config.Set(0, rows, 64);
  config.Set(1, rows, x_bytes);
  config.Set(2, x_bytes / 4, 64);
  return config;
}

TEST(Tiles, BytesOfXAreSignedAndThoseOfTheOtherAreNot) {
  const TileConfig config = Config(2, 8);
  const TileScope scope(config);
  const uint8_t x[2][8] = {{0x80, 1, 2, 3, 4, 5, 6, 7}, {255, 0, 0, 0, 0, 0, 0, 2}};
  uint8_t w[2][64] = {};
  w[0][4 * 9] = 255;     // column 9, the first byte of x
  w[1][4 * 9 + 3] = 10;  // and its last
  int32_t sums[2][16];
  TileLoad<1>(x, 8);
  TileLoad<2>(w, 64);
  TileZero<0>();
  TileDotBytes<0, 1, 2>();
  TileDotBytes<0, 1, 2>();
  TileStore<0>(sums, 64);
  EXPECT_EQ(sums[0][9], 2 * (-128 * 255 + 7 * 10));
  EXPECT_EQ(sums[1][9], 2 * (-1 * 255 + 2 * 10));
  EXPECT_EQ(sums[0][8], 0);
}

TEST(Tiles, EvenAndOddProductsOfBf16AreSummedApart) {
  const TileConfig config = Config(1, 8);
  const TileScope scope(config);
  const auto row = [](std::initializer_list<float> values) {
    std::vector<uint16_t> bits;
    for (float v : values) bits.push_back(Bf16FromFloat(v));
    return bits;
  };
  // 2^24 + 1 is no float: in this order the ones meet each other before they meet it.
  const std::vector<uint16_t> x = row({1, 0x1p24f, 1, -0x1p24f});
  uint16_t w[2][32] = {};
  for (int i = 0; i < 4; ++i) w[i / 2][2 * 5 + i % 2] = Bf16FromFloat(1);
  float sums[16] = {};
  TileLoad<1>(x.data(), 8);
  TileLoad<2>(w, 64);
  TileZero<0>();
  TileDotBf16<0, 1, 2>();
  TileStore<0>(sums, 64);
  EXPECT_EQ(sums[5], 2.0f);
  const std::vector<uint16_t> tiny = row({0x1p-127f, 0, 0, 0x1p-127f});
  TileLoad<1>(tiny.data(), 8);
  TileZero<0>();
  TileDotBf16<0, 1, 2>();
  TileStore<0>(sums, 64);
  EXPECT_EQ(sums[5], 0.0f);
}

TEST(TilesDeathTest, ShapesThatDoNotMeetAreAFault) {
  const auto multiply = [](const TileConfig& config) {
    const TileScope scope(config);
    TileDotBytes<0, 1, 2>();
  };
  TileConfig config = Config(2, 8);
  multiply(config);
  config.Set(2, 1, 64);
  EXPECT_DEATH(multiply(config), "");
  EXPECT_DEATH(TileZero<0>(), "");  // outside a scope
}

class AmxKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Supported(CpuLevel::kAmx)) GTEST_SKIP() << "this CPU has no AMX";
  }
};

TEST_F(AmxKernels, GiveTheBitsOfTheEmulation) {
  constexpr int64_t kRows = 70, kCols = 300, kM = 37;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> source(kRows * kCols);
  for (uint16_t& v : source) v = Bf16FromFloat(normal(random));
  std::vector<float> x(kM * kCols);
  for (float& v : x) v = normal(random);
  const auto product = [&](const KernelTable& kernels) {
    ashlar_device device(kernels, 1);
    ashlar_weight_desc desc{};
    desc.parts = 1, desc.dtype[0] = ASHLAR_BF16, desc.rows[0] = kRows, desc.cols = kCols;
    const void* pointer = source.data();
    ashlar_weight* raw = nullptr;
    EXPECT_EQ(CreateWeight(device, desc, &pointer, &raw), ASHLAR_OK);
    const std::unique_ptr<ashlar_weight> weight(raw);
    std::vector<float> out(kM * kRows);
    EXPECT_EQ(Matmul(device, Matrix(out, kM, kRows), Matrix(x, kM, kCols), *weight, {}), ASHLAR_OK);
    return out;
  };
  EXPECT_EQ(product(KernelsFor(CpuLevel::kAmx)), product(kAmxEmulatedKernels));
}

}  // namespace
}  // namespace ashlar::cpu
