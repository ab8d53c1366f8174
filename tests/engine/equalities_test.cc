// What must not matter: who else is in the batch, how a prompt is cut, what the cache held,
// preemption, block size, layout. Random traces, answered alone in a plain engine first.
#include <gtest/gtest.h>

#include <random>

#include "support/engine_client.h"
#include "support/toy_model_engine.h"
#include "support/toy_model_weights.h"

namespace ashlar {
namespace {

void ExpectEqual(const Answer& expected, const Answer& answer) {
  ASSERT_EQ(answer.ids, expected.ids);
  ASSERT_EQ(answer.finish, expected.finish);
  ASSERT_EQ(answer.stop_id, expected.stop_id);
  auto same = [](const std::vector<TokenLogprob>& a, const std::vector<TokenLogprob>& b) {
    return std::ranges::equal(a, b, [](const TokenLogprob& x, const TokenLogprob& y) {
      return x.id == y.id && x.logprob == y.logprob && x.top == y.top;
    });
  };
  ASSERT_TRUE(same(answer.logprobs, expected.logprobs));
  ASSERT_TRUE(same(answer.prompt_logprobs, expected.prompt_logprobs));
}

// All at once, and then once more on what the cache kept.
void ExpectAnswers(Engine& engine, const std::vector<Request>& requests,
                   const std::vector<Answer>& expected) {
  for (int round = 0; round < 2; ++round) {
    std::vector<Pending> pending;
    for (const Request& request : requests) pending.push_back(Submit(engine, request));
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "round " << round << " request " << i);
      ExpectEqual(expected[i], Wait(*pending[i].events));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EngineStats stats = engine.stats();
  EXPECT_EQ(stats.running + stats.waiting, 0);
  for (const auto& group : stats.groups) EXPECT_EQ(group.free, group.blocks);
}

Engine::Options Alone() {
  Engine::Options options = toy::SmallOptions();
  options.max_sequences = 1;
  options.batch_tokens = 512;
  options.prefix_cache = false;
  return options;
}

toy::Shape Hybrid(int full_block, int sliding_block) {
  toy::Shape shape;
  shape.groups = {{KvKind::kFull, 0, 1, full_block, 0, 200},
                  {KvKind::kSliding, 21, 2, sliding_block, 0, 200}};
  return shape;
}

struct Variation {
  const char* name;
  toy::Shape shape = Hybrid(16, 16);
  Engine::Options options = toy::SmallOptions();
  bool must_preempt = false;
  bool must_hit = false;
};

std::vector<Variation> Variations() {
  std::vector<Variation> all;
  all.push_back({"batched", Hybrid(16, 16), toy::SmallOptions(), false, true});
  all.push_back({"batched, no prefix cache"});
  all.back().options.prefix_cache = false;
  all.push_back({"chunks of 7", Hybrid(16, 16), toy::SmallOptions(), false, true});
  all.back().options.batch_tokens = 7;
  all.push_back({"chunks of 1 and one sequence"});
  all.back().options.batch_tokens = all.back().options.max_sequences = 1;
  all.push_back({"preempted", Hybrid(16, 16), toy::SmallOptions(), true});
  all.back().shape.groups[0].blocks = 12;
  all.push_back({"preempted, no prefix cache", Hybrid(16, 16), toy::SmallOptions(), true});
  all.back().shape.groups[0].blocks = 12;
  all.back().options.prefix_cache = false;
  all.push_back({"tiny sliding pool"});
  all.back().shape.groups[1].blocks = 4;
  all.push_back({"blocks of 1", Hybrid(1, 1)});
  all.back().shape.groups[0].blocks = all.back().shape.groups[1].blocks = 3000;
  all.push_back({"blocks of 32", Hybrid(32, 32)});
  all.push_back({"blocks of 64", Hybrid(64, 64)});
  all.push_back({"blocks of 48 and 32", Hybrid(48, 32)});
  all.push_back({"blocks of 64 as kernel blocks of 16", Hybrid(64, 64)});
  all.back().shape.groups[0].kernel_block_tokens = 16;
  all.back().shape.groups[1].kernel_block_tokens = 32;
  for (const LayoutInfo& info : kLayouts) {
    all.push_back({Name(info.layout).data(), Hybrid(16, 32)});
    all.back().shape.layout = info.layout;
  }
  return all;
}

TEST(Equalities, TheToyModelAnswersAlikeHoweverItIsServed) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::vector<Request> requests = RandomRequests(seed, 24, 64, 100, 40);
    std::vector<Answer> expected;
    {
      toy::ToyEngine alone(Hybrid(16, 16), Alone());
      for (const Request& request : requests) expected.push_back(Ask(*alone, request));
    }
    for (const Variation& variation : Variations()) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << variation.name);
      toy::ToyEngine engine(variation.shape, variation.options);
      ExpectAnswers(*engine, requests, expected);
      EngineStats stats = engine->stats();
      EXPECT_TRUE(stats.preemptions > 0 || !variation.must_preempt);
      EXPECT_TRUE(stats.prefix_hit_tokens > 0 || !variation.must_hit);
      if (HasFatalFailure()) return;
    }
  }
}

// The toy notices: with one block of the cache overwritten the answers differ.
TEST(Equalities, TheToyModelSeesAWrongBlock) {
  toy::ToyForward::Hooks hooks;
  std::atomic<bool> broken{false};
  hooks.step = [&](const StepInput& step) -> Status {
    if (broken && step.max_context > 40) {
      // Entry 1 of the first sequence's table shows block 1 twice.
      auto* table = const_cast<int32_t*>(step.groups[0].block_table);
      table[1] = table[0];
    }
    return Done{};
  };
  toy::ToyEngine engine(Hybrid(16, 16), Alone(), hooks);
  Request request;
  for (int i = 0; i < 50; ++i) request.prompt.push_back(i);
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  Answer right = Ask(*engine, request);
  broken = true;
  EXPECT_NE(Ask(*engine, request).ids, right.ids);
}

// A real forward pass: tiny random weights of two architectures, on plugins whose ops and rows are
// batch-invariant.
class TinyModels : public testing::TestWithParam<const char*> {
 protected:
  void ExpectAlike(toy::Architecture architecture, unsigned seed);
};

void TinyModels::ExpectAlike(toy::Architecture architecture, unsigned seed) {
  std::vector<Request> requests = RandomRequests(seed, 10, toy::kTinyVocab, 50, 12);
  std::vector<Answer> expected;
  {
    toy::TinyEngine alone(architecture, {16, 0, 100}, Alone(), toy::OpenInvariant(GetParam()));
    for (const Request& request : requests) expected.push_back(Ask(*alone, request));
  }
  struct {
    const char* name;
    toy::TinyBlocks blocks;
    int batch_tokens = 64, sequences = 8;
    bool must_preempt = false;
  } variations[] = {{"batched", {16, 0, 100}},
                    {"chunks of 5", {16, 0, 100}, 5, 4},
                    {"preempted", {16, 0, 6}, 64, 8, true},
                    {"blocks of 32", {32, 0, 100}},
                    {"blocks of 64", {64, 0, 100}},
                    {"blocks of 64 as kernel blocks of 16", {64, 16, 100}}};
  for (const auto& variation : variations) {
    SCOPED_TRACE(variation.name);
    Engine::Options options = toy::SmallOptions();
    options.batch_tokens = variation.batch_tokens;
    options.max_sequences = variation.sequences;
    auto device = toy::OpenInvariant(GetParam(), 2);
    const Device& opened = *device;
    toy::TinyEngine engine(architecture, variation.blocks, options, std::move(device));
    ExpectAnswers(*engine, requests, expected);
    EXPECT_TRUE(engine->stats().preemptions > 0 || !variation.must_preempt);
    if (HasFatalFailure()) return;
    // The rows of the plan are those that ran.
    for (const KvGroup& group : engine.plan.groups) {
      EXPECT_GT(opened.RowLaunches(opened.plugin().RowIndex(group.attention[0].row)), 0);
    }
  }
}

// NU-04: one prompt at temperature 0, alone and in a crowd, to the last bit of its
// log-probabilities.
TEST_P(TinyModels, APromptAnswersAlikeInEveryCrowd) {
  std::vector<Request> requests = RandomRequests(33, 32, toy::kTinyVocab, 50, 12);
  Request& watched = requests.front();
  watched.sampling = {};
  watched.sampling.temperature = 0;
  watched.sampling.logprobs = 2;
  std::optional<Answer> alone;
  for (size_t others : {0, 1, 7, 31}) {
    SCOPED_TRACE(others);
    Engine::Options options = toy::SmallOptions();
    options.max_sequences = 32;
    toy::TinyEngine engine(toy::Architecture::kLlama, {16, 0, 300}, options,
                           toy::OpenInvariant(GetParam()));
    std::vector<Pending> pending;
    for (size_t i = others + 1; i-- > 0;) pending.push_back(Submit(*engine, requests[i]));
    const Answer answer = Wait(*pending.back().events);
    if (!alone) alone = answer;
    ExpectEqual(*alone, answer);
  }
  EXPECT_FALSE(alone->ids.empty());
}

TEST_P(TinyModels, LlamaAnswersAlikeHoweverItIsServed) {
  ExpectAlike(toy::Architecture::kLlama, 31);
}
TEST_P(TinyModels, GemmaAnswersAlikeHoweverItIsServed) {
  ExpectAlike(toy::Architecture::kGemma, 32);
}
INSTANTIATE_TEST_SUITE_P(Plugins, TinyModels, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ashlar
