// Each chosen kernel on a small seeded problem against the reference plugin, before Ready.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"

namespace ashlar {

struct SelfTestResult {
  std::string group;  // KV group name
  int attn = 0;       // attention group within it
  std::string row;
  double error = 0;      // largest |out - reference| / largest |reference|
  double tolerance = 0;  // by KV dtype
  bool passed() const { return error <= tolerance; }  // NaN fails
};

// Runs decode and prefill shapes of every attention group in the plan's layout and block size. A
// device fault is a Problem; an excess is a result that did not pass.
Result<std::vector<SelfTestResult>> RunSelfTest(const Plan& plan, const Device& device,
                                                const Device& reference);

}  // namespace ashlar
