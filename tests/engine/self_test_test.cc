#include "engine/self_test.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/engine_client.h"
#include "support/toy_model_engine.h"
#include "support/toy_model_idle.h"
#include "support/toy_model_weights.h"

namespace ashlar {
namespace {

std::string TwistedPath() {
  return std::string(ASHLAR_BUILD_DIR) + "/tests/engine/libashlar_twisted.so";
}

int& Setting(const char* name) {
  void* library = dlopen(TwistedPath().c_str(), RTLD_NOW | RTLD_LOCAL);
  return *static_cast<int*>(dlsym(library, name));
}

std::unique_ptr<Device> OpenTwisted() {
  auto plugin = Plugin::Load(TwistedPath());
  return std::move(*Device::Open(**plugin, {0, 1, true}));
}

// A full and a sliding group of a grouped-query layer.
Plan MakePlan(KvLayout layout, DType dtype, int block, int kernel_block) {
  Plan plan;
  plan.layout = layout;
  for (int window : {0, 20}) {
    LayerSpec layer;
    layer.kind = window > 0 ? KvKind::kSliding : KvKind::kFull;
    layer.heads = 4;
    layer.kv_heads = 2;
    layer.head_dim = 16;
    layer.head_dim_v = 8;
    layer.window = window;
    layer.scale = 0.25f;
    toy::Group group{layer.kind, window, 1, block, kernel_block, 10};
    int index = static_cast<int>(plan.groups.size());
    plan.groups.push_back(toy::MakeGroup(group, index, {index}, layer, dtype));
  }
  return plan;
}

TEST(SelfTest, PassesForTheReferenceInEveryLayoutBlockAndDType) {
  auto device = OpenTwisted();  // copies to and fro, as a GPU would
  auto reference = toy::OpenReference();
  for (const LayoutInfo& layout : kLayouts) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3}) {
      auto results = RunSelfTest(MakePlan(layout.layout, dtype, 16, 16), *device, *reference);
      ASSERT_TRUE(results.ok()) << Text(results.problems());
      ASSERT_EQ(results->size(), 2u);
      for (const SelfTestResult& result : *results) {
        EXPECT_TRUE(result.passed()) << Name(layout.layout) << " " << result.error;
        EXPECT_EQ(result.row, "REFERENCE");
        EXPECT_GT(result.tolerance, 0);
      }
    }
  }
  auto split = RunSelfTest(MakePlan(KvLayout::kLBNHC, DType::kBF16, 64, 16), *device, *reference);
  EXPECT_TRUE(split->at(0).passed() && split->at(1).passed());
  auto single = RunSelfTest(MakePlan(KvLayout::kLBHNC, DType::kBF16, 1, 1), *device, *reference);
  EXPECT_TRUE(single->at(0).passed() && single->at(1).passed());
}

TEST(SelfTest, FailsForEachWayToBeWrong) {
  auto device = OpenTwisted();
  auto reference = toy::OpenReference();
  Plan plan = MakePlan(KvLayout::kLBHNC, DType::kBF16, 16, 16);
  Plan eight_bits = MakePlan(KvLayout::kLBHNC, DType::kF8E4M3, 16, 16);
  int& twist = Setting("ashlar_test_twist");
  for (int wrong : {1, 2, 3, 4}) {
    for (const Plan* of : {&plan, &eight_bits}) {
      twist = wrong;
      auto results = RunSelfTest(*of, *device, *reference);
      twist = 0;
      ASSERT_TRUE(results.ok());
      EXPECT_EQ(results->at(0).passed(), wrong == 2) << "twist " << wrong;  // no window, no edge
      EXPECT_FALSE(results->at(1).passed()) << "twist " << wrong;
    }
  }
  twist = 5;
  auto results = RunSelfTest(plan, *device, *reference);
  twist = 0;
  EXPECT_TRUE(!results.ok() || !results->at(0).passed());
}

TEST(SelfTest, ADeviceFaultIsAProblem) {
  auto device = OpenTwisted();
  auto reference = toy::OpenReference();
  Setting("ashlar_test_fail_after") = 1;
  auto results = RunSelfTest(MakePlan(KvLayout::kLBHNC, DType::kF32, 16, 16), *device, *reference);
  Setting("ashlar_test_fail_after") = -1;
  EXPECT_FALSE(results.ok());
}

TEST(SelfTest, NamesARowThatIsNotThere) {
  auto device = OpenTwisted();
  auto reference = toy::OpenReference();
  Plan plan = MakePlan(KvLayout::kLBHNC, DType::kF32, 16, 16);
  plan.groups[1].attention[0].row = "CPU_WINDOW";
  auto results = RunSelfTest(plan, *device, *reference);
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(Text(results.problems()), testing::HasSubstr("no row CPU_WINDOW"));
}

// The engine reaches such memory by copies only, and answers as on host memory.
TEST(Island, TheEngineCopiesToMemoryItCannotTouch) {
  std::vector<Request> requests = RandomRequests(5, 6, toy::kTinyVocab, 40, 8);
  toy::TinyEngine host(toy::Architecture::kGemma, {16, 0, 100}, toy::SmallOptions());
  toy::TinyEngine island(toy::Architecture::kGemma, {16, 0, 100}, toy::SmallOptions(),
                         OpenTwisted());
  for (const Request& request : requests) {
    EXPECT_EQ(Ask(*island, request).ids, Ask(*host, request).ids);
  }
}

// Notes the tokens of each sequence of its steps.
class NotesSizes final : public toy::IdleForward {
 public:
  NotesSizes(int64_t vocab, int rows, std::vector<std::vector<int>>& sizes)
      : IdleForward(vocab, rows), sizes_(sizes) {}
  Result<Tensor> Run(const ModelWeights& weights, const std::vector<LayerKv>& kv,
                     const StepInput& step) override {
    std::vector<int>& size = sizes_.emplace_back();
    for (int s = 0; s < step.sequences; ++s) {
      size.push_back(step.query_start[s + 1] - step.query_start[s]);
    }
    return IdleForward::Run(weights, kv, step);
  }

 private:
  std::vector<std::vector<int>>& sizes_;
};

TEST(Island, AnIdleStepOfTheTopComesBeforeAnyOfARange) {
  using Size = std::vector<int>;
  toy::Shape shape;
  shape.context_length = 64;
  Plan plan = toy::MakePlan(shape);
  auto device = OpenTwisted();
  Engine::Options options = toy::SmallOptions();
  options.batch_tokens = 101;  // more than a context, and all of them are run
  std::vector<Size> sizes;
  auto worker =
      toy::MakeWorker(plan, *device, options,
                      std::make_unique<NotesSizes>(shape.vocab, options.max_sequences, sizes));
  ASSERT_TRUE(worker->Rehearse().ok());
  EXPECT_THAT(sizes, testing::ElementsAre(Size{51, 50}, Size(8, 1), Size{1}, Size{1}));
  sizes.clear();

  ASSERT_TRUE(worker->Step().ok());
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 2;
  request.ignore_eos = true;
  worker->Accept(toy::MakeSequence(1, std::move(request), std::make_shared<EventQueue>()));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(worker->Step().ok());
  EXPECT_THAT(sizes, testing::ElementsAre(Size(2, 1), Size(4, 1), Size{3}, Size{1}, Size{16},
                                          Size{32}, Size{64}, Size{40, 40}, Size{48, 48}));
  EXPECT_TRUE(worker->warm());
}

// While it lives, the device takes so long from one mark to the next.
class StepsTake {
 public:
  explicit StepsTake(int ms) { Setting() = ms; }
  StepsTake(const StepsTake&) = delete;
  ~StepsTake() { Setting() = 0; }

 private:
  static std::atomic<int>& Setting() {
    void* library = dlopen(TwistedPath().c_str(), RTLD_NOW | RTLD_LOCAL);
    return *static_cast<std::atomic<int>*>(dlsym(library, "ashlar_test_step_ms"));
  }
};

// While a step runs the next one waits, for what could be in it.
TEST(Island, AStepWaitsBesideOneUnderWay) {
  toy::Shape shape;
  Plan plan = toy::MakePlan(shape);
  auto device = OpenTwisted();
  Engine::Options options = toy::SmallOptions();
  options.max_sequences = 2;
  auto worker =
      toy::MakeWorker(plan, *device, options,
                      std::make_unique<toy::IdleForward>(shape.vocab, options.max_sequences));
  ASSERT_TRUE(worker->Rehearse().ok());
  while (!worker->warm()) ASSERT_TRUE(worker->Step().ok());
  auto accept = [&](uint64_t id) {
    Request request;
    request.prompt = {1, 2, 3};
    request.max_tokens = 100;
    request.ignore_eos = true;
    worker->Accept(toy::MakeSequence(id, std::move(request), std::make_shared<EventQueue>()));
  };
  const StepsTake steps(100);
  accept(1);
  EXPECT_EQ(worker->Spare().count(), 0);  // nothing runs
  double spare = 0;
  for (int i = 0; i < 20 && spare == 0; ++i) {  // the machine may pause
    ASSERT_TRUE(worker->Step().ok());
    spare = worker->Spare().count();
  }
  EXPECT_GT(spare, 0);
  EXPECT_LT(spare, 0.1);
  // That it is started late makes the next one wait for less.
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  ASSERT_TRUE(worker->Step().ok());
  EXPECT_LT(worker->Spare().count(), 0.8 * spare);
  accept(2);
  EXPECT_EQ(worker->Spare().count(), 0);  // one has come
  worker->EndAll(FinishReason::kCancelled, "");
}

// One that comes just after a step has begun is in the next.
TEST(Island, ARequestIsInTheStepAfterTheOneUnderWay) {
  const StepsTake steps(100);
  toy::TinyEngine engine(toy::Architecture::kLlama, {16, 0, 100}, toy::SmallOptions(),
                         OpenTwisted());
  while (!engine->stats().warm) std::this_thread::yield();
  Request request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 200;
  request.ignore_eos = true;
  Pending answer = Submit(*engine, request);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(answer.events->Pop(std::chrono::seconds(60)));
  request.max_tokens = 1;
  int64_t fewest = 100;
  for (int i = 0; i < 10 && fewest > 2; ++i) {                  // the machine may pause
    ASSERT_TRUE(answer.events->Pop(std::chrono::seconds(60)));  // a step has begun just now
    const int64_t before = engine->stats().steps;
    EXPECT_EQ(Ask(*engine, request).ids.size(), 1u);
    fewest = std::min(fewest, engine->stats().steps - before);
    while (answer.events->Pop(std::chrono::seconds(0))) {
    }
  }
  EXPECT_EQ(fewest, 2);  // that under way, and its own
}

TEST(Island, AnOpThatFailsIsADeviceFault) {
  toy::TinyEngine engine(toy::Architecture::kLlama, {16, 0, 100}, toy::SmallOptions(),
                         OpenTwisted());
  while (!engine->stats().warm) std::this_thread::yield();
  Request request;
  request.prompt = {1, 2, 3};
  Setting("ashlar_test_fail_after") = 6;
  Answer answer = Ask(*engine, request);
  Setting("ashlar_test_fail_after") = -1;
  EXPECT_EQ(answer.finish, FinishReason::kError);
  EXPECT_NE(engine->stats().fault, "");
}

}  // namespace
}  // namespace ashlar
