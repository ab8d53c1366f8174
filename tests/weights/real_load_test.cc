// SmolLM2-135M-Instruct in Q4_1, when the build is told where it is (ASHLAR_SMOLLM2).
#include <gtest/gtest.h>

#include "weights/weights.h"

namespace ashlar {
namespace {

TEST(RealLoad, SmolLm2IsLoadedWholeAndInPlace) {
  std::string path = ASHLAR_SMOLLM2;
  if (path.empty()) GTEST_SKIP() << "configure with -DASHLAR_SMOLLM2=FILE to load a real GGUF";
  Checkpoint checkpoint = OpenCheckpoint(path).value();
  ModelConfig config = ReadModelConfig(checkpoint).value();
  const Plugin* plugin =
      Plugin::Load(ASHLAR_BUILD_DIR "/lib/ashlar/libashlar_reference.so").value();
  auto device = Device::Open(*plugin, {}).value();
  int64_t done = 0;
  Result<ModelWeights> weights =
      LoadWeights(checkpoint, config, *device, [&](int64_t now, int64_t) { done = now; });
  ASSERT_TRUE(weights.ok()) << Text(weights.problems());
  EXPECT_EQ(done, checkpoint.total_bytes());
  EXPECT_EQ(weights->layers.size(), 30u);
  EXPECT_EQ(weights->embedding.rows(), 49152);
  EXPECT_EQ(weights->layers[29].qkv.rows(), 576 + 2 * 192);
  EXPECT_TRUE(weights->head.empty());
  std::vector<float> row(576);
  int32_t id = 1;
  ASSERT_TRUE(
      device->Embed(Tensor::Of(row.data(), DType::kF32, {1, 576}), weights->embedding, &id, 1)
          .ok());
  float largest = 0;
  for (float value : row) largest = std::max(largest, std::abs(value));
  EXPECT_GT(largest, 0.01f);
  EXPECT_LT(largest, 10.0f);
}

}  // namespace
}  // namespace ashlar
