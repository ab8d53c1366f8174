// Any bytes as a plan's file: one that can be compared with a plan of ours, or problems.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "plan/diff.h"
#include "plan/document.h"
#include "plan/exchange.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using ashlar::Check;
  using ashlar::Json;
  static const Json ours = {{"hash", "00ff"},
                            {"layout", "LBHNC"},
                            {"hashBlockSize", 16},
                            {"kvGroups",
                             {{{"name", "full_attention"},
                               {"kind", "full_attention"},
                               {"window", 0},
                               {"dtype", "bfloat16"},
                               {"layers", {0, 1}},
                               {"blockSize", 16},
                               {"kernelBlockSize", 16},
                               {"page", {{"headSlots", 2}, {"states", 16}, {"contentBytes", 128}}},
                               {"attention", {{{"backend", "CPU_PAGED"}}}}}}}};
  std::string_view text(reinterpret_cast<const char*>(data), size);
  ashlar::Result<Json> plan = ashlar::ParsePlanDocument(text, "a.plan");
  if (!plan.ok()) {
    Check(!plan.problems().empty(), "a refusal has a problem");
    return 0;
  }
  Check(ashlar::DiffPlans(*plan, *plan).empty(), "a plan does not differ from itself");
  (void)ashlar::DiffPlans(ours, *plan);
  (void)ashlar::MatchPlans(ours, *plan, ashlar::KnownRows());
  return 0;
}
