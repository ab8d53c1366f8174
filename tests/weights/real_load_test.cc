// SmolLM2-135M-Instruct in Q4_1, when the build is told where it is (ASHLAR_SMOLLM2).
#include <gtest/gtest.h>

#include "support/weights_resident.h"
#include "weights/weights.h"

namespace ashlar {
namespace {

struct Model {
  explicit Model(const std::string& plugin_name) {
    checkpoint = OpenCheckpoint(ASHLAR_SMOLLM2).value();
    ModelConfig config = ReadModelConfig(checkpoint).value();
    std::string path = ASHLAR_BUILD_DIR "/lib/ashlar/libashlar_" + plugin_name + ".so";
    device = Device::Open(*Plugin::Load(path).value(), {.threads = 1}).value();
    weights = LoadWeights(checkpoint, config, *device, [this](int64_t now, int64_t) {
                done = now;
              }).value();
  }

  std::vector<float> EmbeddingOf(int32_t id) const {
    std::vector<float> row(576);
    Tensor out = Tensor::Of(row.data(), DType::kF32, {1, 576});
    EXPECT_TRUE(device->Embed(out, weights.embedding, &id, 1).ok());
    return row;
  }

  Checkpoint checkpoint;
  std::unique_ptr<Device> device;
  ModelWeights weights;
  int64_t done = 0;
};

class RealLoad : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string_view(ASHLAR_SMOLLM2).empty())
      GTEST_SKIP() << "configure with -DASHLAR_SMOLLM2=FILE to load a real GGUF";
  }
};

TEST_F(RealLoad, FillsEveryWeightOfSmolLm2) {
  Model model("reference");
  EXPECT_EQ(model.done, model.checkpoint.total_bytes());
  EXPECT_EQ(model.weights.layers.size(), 30u);
  EXPECT_EQ(model.weights.embedding.rows(), 49152);
  EXPECT_EQ(model.weights.layers[29].qkv.rows(), 576 + 2 * 192);
  EXPECT_TRUE(model.weights.head.empty());
}

TEST_F(RealLoad, KeepsOneCopyWhateverThePluginDoes) {
  const int64_t size = OpenCheckpoint(ASHLAR_SMOLLM2)->total_bytes();
  std::vector<float> expected;
  {
    Model in_place("reference");
    EXPECT_GE(testing_support::ResidentBytes(ASHLAR_SMOLLM2), size);
    expected = in_place.EmbeddingOf(49151);
  }
  Model packed("cpu");
  EXPECT_LT(testing_support::ResidentBytes(ASHLAR_SMOLLM2), size / 20);
  std::vector<float> row = packed.EmbeddingOf(49151);
  for (size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], expected[i], 1e-6) << i;
}

}  // namespace
}  // namespace ashlar
