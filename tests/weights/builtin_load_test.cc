#include <gtest/gtest.h>

#include "weights/weights.h"

namespace ashlar {
namespace {

TEST(BuiltinLoad, EachModelOfTheBinaryHasAllThatItNeeds) {
  if (BuiltinCheckpointNames().empty()) GTEST_SKIP() << "no model was linked into this build";
  const Plugin* plugin =
      Plugin::Load(ASHLAR_BUILD_DIR "/lib/ashlar/libashlar_reference.so").value();
  auto device = Device::Open(*plugin, {}).value();
  for (const std::string& name : BuiltinCheckpointNames()) {
    Checkpoint checkpoint = OpenBuiltinCheckpoint(name).value();
    ModelConfig config = ReadModelConfig(checkpoint).value();
    Result<ModelWeights> weights = LoadWeights(checkpoint, config, *device, {});
    ASSERT_TRUE(weights.ok()) << Text(weights.problems());
    EXPECT_EQ(weights->layers.size(), config.layers.size());
    EXPECT_EQ(weights->embedding.rows(), config.vocab);
  }
}

}  // namespace
}  // namespace ashlar
