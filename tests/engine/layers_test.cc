// Steps whose layers run as one op, on the reference with such an op made of its others.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "support/engine_client.h"
#include "support/toy_model_engine.h"
#include "support/toy_model_weights.h"

namespace ashlar {
namespace {

enum Way { kDeclines, kTakes, kFails };

std::string Path() { return std::string(ASHLAR_BUILD_DIR) + "/tests/engine/libashlar_layers.so"; }

int& Variable(const char* name) {
  return *static_cast<int*>(dlsym(dlopen(Path().c_str(), RTLD_NOW | RTLD_LOCAL), name));
}

std::unique_ptr<Device> Open(Way way) {
  auto plugin = Plugin::Load(Path());
  Variable("ashlar_test_answer") = way;
  Variable("ashlar_test_calls") = Variable("ashlar_test_wrong_calls") = 0;
  return std::move(*Device::Open(**plugin, {0, 1, true}));
}

int Calls() { return Variable("ashlar_test_calls"); }

// Of some sequences together.
std::vector<std::vector<int32_t>> Answers(toy::TinyEngine& engine) {
  std::vector<Pending> pending;
  for (const Request& request : RandomRequests(5, 12, toy::kTinyVocab, 60, 12)) {
    pending.push_back(Submit(*engine, request));
  }
  std::vector<std::vector<int32_t>> answers;
  for (const Pending& each : pending) answers.push_back(Wait(*each.events).ids);
  return answers;
}

std::vector<std::vector<int32_t>> Answers(toy::Architecture architecture,
                                          std::unique_ptr<Device> device) {
  toy::TinyEngine engine(architecture, {16, 0, 200}, toy::SmallOptions(), std::move(device));
  return Answers(engine);
}

TEST(Layers, GiveTheAnswersOfSingleOps) {
  const auto want = Answers(toy::Architecture::kLlama, toy::OpenReference());
  EXPECT_EQ(Answers(toy::Architecture::kLlama, Open(kTakes)), want);
  EXPECT_GT(Calls(), 10);
  EXPECT_EQ(Variable("ashlar_test_wrong_calls"), 0);
}

TEST(Layers, FallToSingleOpsWhenThePluginLeavesThem) {
  const auto want = Answers(toy::Architecture::kLlama, toy::OpenReference());
  EXPECT_EQ(Answers(toy::Architecture::kLlama, Open(kDeclines)), want);
  EXPECT_GT(Calls(), 10);
}

TEST(Layers, WithNormsBehindTheirHalvesAreNeverAskedFor) {
  const auto want = Answers(toy::Architecture::kGemma, toy::OpenReference());
  EXPECT_EQ(Answers(toy::Architecture::kGemma, Open(kTakes)), want);
  EXPECT_EQ(Calls(), 0);
}

TEST(Layers, ThatFailAreADeviceFault) {
  toy::TinyEngine engine(toy::Architecture::kLlama, {16, 0, 200}, toy::SmallOptions(),
                         Open(kTakes));
  Variable("ashlar_test_answer") = kFails;  // the start has run some
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 4;
  const Answer answer = Ask(*engine, request);
  EXPECT_EQ(answer.finish, FinishReason::kError);
  EXPECT_NE(engine->stats().fault, "");
}

}  // namespace
}  // namespace ashlar
