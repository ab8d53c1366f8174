// Tiny random-weight models of every architecture against transformers in float32
// (make_goldens.py).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "support/checkpoint_files.h"
#include "support/counter_weights.h"
#include "support/model_runner.h"
#include "support/safetensors_writer.h"
#include "weights/weights.h"

namespace ashlar {
namespace {

using testing_support::CounterWeights;
using testing_support::ModelRunner;
using testing_support::SafetensorsWriter;
using testing_support::TempFolder;

const std::filesystem::path kGoldens = ASHLAR_SOURCE_DIR "/tests/model/goldens";

struct Golden {
  Json config, tensors;
  std::vector<std::vector<int32_t>> prompts;
  std::vector<std::vector<float>> logits;  // of each prompt, [tokens, vocab]
};

Golden ReadGolden(const std::string& name) {
  std::string text = ReadTextFile(kGoldens / (name + ".json"), 1 << 20).value();
  Json json = ParseJson(text, name).value();
  Golden golden{json["config"],
                json["tensors"],
                json["prompts"].get<std::vector<std::vector<int32_t>>>(),
                {}};
  std::ifstream file(kGoldens / (name + ".f32"), std::ios::binary);
  for (const auto& prompt : golden.prompts) {
    std::vector<float> logits(prompt.size() * golden.config["vocab_size"].get<size_t>());
    file.read(reinterpret_cast<char*>(logits.data()),
              static_cast<std::streamsize>(logits.size() * sizeof(float)));
    EXPECT_TRUE(file.good());
    golden.logits.push_back(std::move(logits));
  }
  return golden;
}

// The same numbers in either type.
std::string Weights(const Golden& golden, bool bf16) {
  SafetensorsWriter writer;
  for (const auto& [name, shape] : golden.tensors.items()) {
    std::vector<int64_t> extents = shape.get<std::vector<int64_t>>();
    int64_t count =
        std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
    std::vector<float> values = CounterWeights(name, count);
    std::string bytes;
    for (float value : values) {
      const char* raw = reinterpret_cast<const char*>(&value);
      bytes.append(bf16 ? raw + 2 : raw, bf16 ? 2 : 4);
    }
    writer.Tensor(name, bf16 ? "BF16" : "F32", extents, bytes);
  }
  return writer.Bytes();
}

// A model of a golden, loaded by one plugin.
class Loaded {
 public:
  Loaded(const Golden& golden, const std::string& plugin, bool bf16)
      : kv_dtype_(bf16 ? DType::kBF16 : DType::kF32) {
    Json config = golden.config;
    config["dtype"] = bf16 ? "bfloat16" : "float32";
    folder_.Write("config.json", DumpJson(config));
    folder_.Write("model.safetensors", Weights(golden, bf16));
    checkpoint_ = std::make_unique<Checkpoint>(OpenCheckpoint(folder_.path()).value());
    config_ = ReadModelConfig(*checkpoint_).value();
    const Plugin* loaded =
        Plugin::Load(ASHLAR_BUILD_DIR "/lib/ashlar/libashlar_" + plugin + ".so").value();
    device_ = Device::Open(*loaded, {.threads = 2}).value();
    weights_ = LoadWeights(*checkpoint_, config_, *device_, [](int64_t, int64_t) {}).value();
  }
  ModelRunner Runner() { return ModelRunner(config_, *device_, weights_, kv_dtype_, 64); }

  ModelConfig config_;

 private:
  DType kv_dtype_;
  TempFolder folder_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Device> device_;
  ModelWeights weights_;
};

int ArgMax(const float* row, int64_t vocab) {
  return static_cast<int>(std::max_element(row, row + vocab) - row);
}

float Margin(const float* row, int64_t vocab) {
  int best = ArgMax(row, vocab);
  float second = -INFINITY;
  for (int i = 0; i < vocab; ++i) {
    if (i != best) second = std::max(second, row[i]);
  }
  return row[best] - second;
}

std::vector<double> LogSoftmax(const float* row, int64_t vocab) {
  double most = row[ArgMax(row, vocab)], sum = 0;
  for (int i = 0; i < vocab; ++i) sum += std::exp(row[i] - most);
  std::vector<double> result;
  for (int i = 0; i < vocab; ++i) result.push_back(row[i] - most - std::log(sum));
  return result;
}

// Largest error at most 1e-4 of the largest logit, and the same best token wherever the margin is
// above 1e-3.
void ExpectFloat32Agreement(const std::vector<float>& ours, const std::vector<float>& golden,
                            int64_t vocab) {
  ASSERT_EQ(ours.size(), golden.size());
  double scale = 0, error = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    scale = std::max(scale, std::abs(double{golden[i]}));
    error = std::max(error, std::abs(double{ours[i]} - golden[i]));
  }
  EXPECT_LE(error, 1e-4 * scale);
  for (size_t row = 0; row < golden.size() / static_cast<size_t>(vocab); ++row) {
    const float* truth = golden.data() + row * static_cast<size_t>(vocab);
    if (Margin(truth, vocab) > 1e-3) {
      EXPECT_EQ(ArgMax(ours.data() + row * static_cast<size_t>(vocab), vocab), ArgMax(truth, vocab))
          << "token " << row;
    }
  }
}

// Teacher-forced: equal where the margin is above 0.25, else within 0.5 nat of the best; mean KL at
// most 0.01.
void ExpectBfloat16Agreement(const std::vector<float>& ours, const std::vector<float>& golden,
                             int64_t vocab) {
  ASSERT_EQ(ours.size(), golden.size());
  size_t rows = golden.size() / static_cast<size_t>(vocab);
  double divergence = 0;
  for (size_t row = 0; row < rows; ++row) {
    const float* truth = golden.data() + row * static_cast<size_t>(vocab);
    const float* mine = ours.data() + row * static_cast<size_t>(vocab);
    std::vector<double> p = LogSoftmax(truth, vocab), q = LogSoftmax(mine, vocab);
    int choice = ArgMax(mine, vocab), best = ArgMax(truth, vocab);
    if (Margin(truth, vocab) > 0.25) {
      EXPECT_EQ(choice, best) << "token " << row;
    } else {
      EXPECT_LE(p[static_cast<size_t>(best)] - p[static_cast<size_t>(choice)], 0.5)
          << "token " << row;
    }
    for (size_t i = 0; i < p.size(); ++i) divergence += std::exp(p[i]) * (p[i] - q[i]);
  }
  EXPECT_LE(divergence / static_cast<double>(rows), 0.01);
}

class Goldens : public testing::TestWithParam<std::string> {};

TEST_P(Goldens, ReferenceInFloat32EqualsTransformers) {
  Golden golden = ReadGolden(GetParam());
  Loaded model(golden, "reference", false);
  for (size_t i = 0; i < golden.prompts.size(); ++i) {
    ExpectFloat32Agreement(model.Runner().Append(golden.prompts[i]), golden.logits[i],
                           model.config_.vocab);
  }
}

TEST_P(Goldens, PrefillThenDecodeEqualsTransformers) {
  Golden golden = ReadGolden(GetParam());
  Loaded model(golden, "reference", false);
  const std::vector<int32_t>& prompt = golden.prompts[1];
  ModelRunner runner = model.Runner();
  std::vector<float> logits = runner.Append({prompt.begin(), prompt.begin() + 17});
  for (size_t i = 17; i < prompt.size(); ++i) {
    std::vector<float> next = runner.Append({prompt[i]});
    logits.insert(logits.end(), next.begin(), next.end());
  }
  ExpectFloat32Agreement(logits, golden.logits[1], model.config_.vocab);
}

TEST_P(Goldens, CpuPluginInFloat32EqualsTransformers) {
  Golden golden = ReadGolden(GetParam());
  Loaded model(golden, "cpu", false);
  for (size_t i = 0; i < golden.prompts.size(); ++i) {
    ExpectFloat32Agreement(model.Runner().Append(golden.prompts[i]), golden.logits[i],
                           model.config_.vocab);
  }
}

TEST_P(Goldens, CpuPluginInBfloat16KeepsTheRule) {
  Golden golden = ReadGolden(GetParam());
  Loaded model(golden, "cpu", true);
  for (size_t i = 0; i < golden.prompts.size(); ++i) {
    ExpectBfloat16Agreement(model.Runner().Append(golden.prompts[i]), golden.logits[i],
                            model.config_.vocab);
  }
}

std::vector<std::string> GoldenNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGoldens)) {
    if (entry.path().extension() == ".f32") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Architectures, Goldens, testing::ValuesIn(GoldenNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The family is complete: a lost file must not shrink the test.
TEST(GoldenFiles, CoverEveryArchitectureWithAForward) {
  EXPECT_EQ(GoldenNames(), (std::vector<std::string>{
                               "gemma3", "llama", "llama-linear", "llama-llama3", "llama-tied-bias",
                               "llama-yarn", "mistral-window", "qwen2", "qwen3", "qwen3-window"}));
}

}  // namespace
}  // namespace ashlar
