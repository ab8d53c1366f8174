#include <fmt/format.h>

#include <algorithm>

#include "plan/plan.h"
#include "plan/select.h"

namespace ashlar {
namespace {

void CheckRow(const Plan& plan, const KvGroup& group, const AttentionGroup& attention,
              const std::vector<AttentionRow>& rows, Problems& out) {
  if (attention.row.empty() && !attention.op_driven) return;  // nothing reads a cache here
  std::string place = fmt::format("group {} attn {}", group.name, attention.index);
  if (attention.op_driven) {
    out.push_back({place, fmt::format("{}: {}", kOpDriven, attention.reason),
                   "a backend with a kernel", "serve the model on a platform with an MLA backend"});
    return;
  }
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](const AttentionRow& r) { return r.name == attention.row; });
  if (row == rows.end()) {
    out.push_back({place, fmt::format("{}: {}", attention.row, Text(RefusalReason::kPluginMissing)),
                   "a backend of an installed plugin", "install its plugin"});
    return;
  }
  if (row->verification == Verification::kPlanned) {
    out.push_back({place, fmt::format("{}: {}", attention.row, Text(RefusalReason::kPlanned)),
                   "a backend with a kernel", "choose another backend or platform"});
  }
  if (row->platform != plan.platform) {
    out.push_back({place,
                   fmt::format("{} belongs to plugin {}, the rest of the model to {}",
                               attention.row, row->platform, plan.platform),
                   "one plugin for a whole model",
                   fmt::format("set platform to {}", row->platform)});
  }
}

}  // namespace

Problems CheckServable(const Plan& plan, const std::vector<AttentionRow>& rows) {
  Problems problems;
  if (!plan.model.has_forward) {
    problems.push_back({"source",
                        fmt::format("architecture {} can be planned only", plan.model.architecture),
                        "an architecture with a forward pass", "serve another model"});
  }
  if (const std::string& method = plan.model.quantization.method; !method.empty()) {
    problems.push_back({"source",
                        fmt::format("weights quantised as {} can be planned only", method),
                        "safetensors in float32, float16 or bfloat16, or GGUF",
                        "serve the model from its unquantised checkpoint or a GGUF file"});
  }
  for (const KvGroup& group : plan.groups) {
    for (const AttentionGroup& attention : group.attention)
      CheckRow(plan, group, attention, rows, problems);
  }
  return problems;
}

}  // namespace ashlar
