#include "plan/hash.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/plan_builders.h"

namespace ashlar {
namespace {

using testing::BasicSpec;
using testing::CpuPlatform;
using testing::HybridModel;

Plan Base() {
  Result<Plan> plan = MakePlan(BasicSpec(), CpuPlatform(), HybridModel(), {});
  if (!plan.ok()) ADD_FAILURE() << Text(plan.problems());
  return plan.ok() ? std::move(*plan) : Plan{};
}

struct Change {
  const char* name;
  std::function<void(Plan&)> apply;
};

TEST(PlanHash, ChangesWithWhatPeersMustAgreeOn) {
  const Change changes[] = {
      {"layout", [](Plan& p) { p.layout = KvLayout::kBLNHC; }},
      {"numerics", [](Plan& p) { p.invariant = true; }},
      {"quantization", [](Plan& p) { p.quantization = "fp8"; }},
      {"hash block", [](Plan& p) { p.hash_block_tokens = 64; }},
      {"kind", [](Plan& p) { p.groups[0].kind = KvKind::kChunkedLocal; }},
      {"window", [](Plan& p) { p.groups[0].window = 256; }},
      {"layers", [](Plan& p) { p.groups[0].layers.pop_back(); }},
      {"type", [](Plan& p) { p.groups[0].dtype = DType::kF16; }},
      {"KV heads", [](Plan& p) { p.groups[0].attention[0].layer.kv_heads = 4; }},
      {"head size", [](Plan& p) { p.groups[0].attention[0].layer.head_dim = 64; }},
      {"block", [](Plan& p) { p.groups[0].block_tokens = 64; }},
      {"kernel block", [](Plan& p) { p.groups[0].kernel_block_tokens = 16; }},
      {"content", [](Plan& p) { p.groups[0].content_bytes = 64; }},
      {"padding", [](Plan& p) { p.groups[0].page_bytes += 64; }},
      {"row", [](Plan& p) { p.groups[0].attention[0].row = "OTHER"; }},
  };
  const std::string base = PlanHash(Base());
  for (const Change& change : changes) {
    Plan plan = Base();
    change.apply(plan);
    EXPECT_NE(PlanHash(plan), base) << change.name;
  }
}

TEST(PlanHash, StaysWithEverythingElse) {
  const Change changes[] = {
      {"model name", [](Plan& p) { p.model_name = "other"; }},
      {"machine", [](Plan& p) { p.platform_name = "other"; }},
      {"device", [](Plan& p) { p.device = p.device_number = 3; }},
      {"threads", [](Plan& p) { p.threads = 64; }},
      {"free bytes", [](Plan& p) { p.memory.free_bytes = 1; }},
      {"blocks", [](Plan& p) { p.groups[0].blocks = 7; }},
      {"offset", [](Plan& p) { p.groups[1].offset = 64; }},
      {"strides", [](Plan& p) { p.groups[1].strides = {}; }},  // they follow from the blocks
      {"context", [](Plan& p) { p.context_length = 16; }},
      {"limits", [](Plan& p) { p.max_sequences = p.batch_tokens = 1; }},
      {"notes", [](Plan& p) { p.notes = {"a note"}; }},
      {"candidates", [](Plan& p) { p.groups[0].attention[0].candidates.clear(); }},
      {"reason", [](Plan& p) { p.groups[0].attention[0].reason = "forced"; }},
      {"spec", [](Plan& p) { p.spec_digest = "0"; }},
  };
  const std::string base = PlanHash(Base());
  for (const Change& change : changes) {
    Plan plan = Base();
    change.apply(plan);
    EXPECT_EQ(PlanHash(plan), base) << change.name;
  }
}

}  // namespace
}  // namespace ashlar
