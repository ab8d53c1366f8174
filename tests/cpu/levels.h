// Runs a test at every level that this machine has, each on one and three threads; tests of what is
// multiplied by tiles also at the emulated one, whose other kernels are those of portable.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device.h"
#include "emulated.h"
#include "level.h"

namespace ashlar::cpu {

struct LevelCase {
  const KernelTable* kernels;
  int threads;
};

inline std::vector<LevelCase> LevelCases(bool tiles) {
  std::vector<const KernelTable*> tables;
  if (tiles) tables.push_back(&kAmxEmulatedKernels);
  for (int i = 0; i < kCpuLevelCount; ++i)
    if (Supported((CpuLevel)i)) tables.push_back(&KernelsFor((CpuLevel)i));
  std::vector<LevelCase> cases;
  for (const KernelTable* table : tables)
    for (int threads : {1, 3}) cases.push_back({table, threads});
  return cases;
}

inline std::string CaseName(const ::testing::TestParamInfo<LevelCase>& info) {
  std::string name = info.param.kernels->name;
  for (char& c : name)
    if (c == '-') c = '_';
  return name + "_" + std::to_string(info.param.threads);
}

class LevelTest : public ::testing::TestWithParam<LevelCase> {
 protected:
  LevelTest() : device_(*GetParam().kernels, GetParam().threads), random_(Seed()) {}
  void SetUp() override { RecordProperty("seed", std::to_string(Seed())); }

  static uint32_t Seed() {
    static const uint32_t seed = [] {
      const uint32_t drawn = std::random_device()();
      printf("seed %u\n", drawn);
      return drawn;
    }();
    return seed;
  }
  std::vector<float> Normals(int64_t n, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(n);
    for (float& v : values) v = normal(random_);
    return values;
  }
  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  ashlar_device device_;
  std::mt19937 random_;
};

#define ASHLAR_LEVEL_SUITE(Suite, tiles) \
  INSTANTIATE_TEST_SUITE_P(Every, Suite, ::testing::ValuesIn(LevelCases(tiles)), CaseName)

inline ashlar_tensor Matrix(std::vector<float>& data, int64_t rows, int64_t cols) {
  return {data.data(), ASHLAR_F32, 2, {rows, cols}, {cols * 4, 4}};
}

}  // namespace ashlar::cpu
