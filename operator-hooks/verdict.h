// Whether a model may be started at all, in the runtime's own words: its document is read and
// planned for each kind of node before any image is pulled.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "operator-hooks/hook_metrics.h"
#include "operator-hooks/inference_model.h"
#include "operator-hooks/node_plan.h"
#include "operator-hooks/nodes.h"
#include "operator-hooks/settings.h"
#include "spec/spec.h"

namespace ashlar::hooks {

struct Verdict {
  // "Accepted", "GeometryUnknown", "NodesUnknown"; else refused: "SpecInvalid",
  // "SourceUnsupported", "MissingCRD", "NoNodeCanServe".
  std::string reason;
  bool accepted = false;
  Problems problems;         // why it is refused
  std::string message;       // one for people, in either case
  std::optional<Spec> spec;  // whenever the document is valid
  std::vector<NodePlan> plans;
};

Verdict Judge(const InferenceModel& model, const std::vector<NodeKind>& nodes,
              const Settings& settings);

// Without regard to which nodes there are: planned for every platform that is known by name, as if
// it had memory to spare. What this refuses no node can serve; Judge words it alike.
Verdict JudgeAnywhere(const InferenceModel& model, const Settings& settings);

// Verdicts by what they depend on. Saves time and changes nothing. For any thread.
class VerdictMemo {
 public:
  // Counts what it has and what it has not; outlives the memo.
  explicit VerdictMemo(HookMetrics& metrics) : metrics_(metrics) {}
  std::shared_ptr<const Verdict> For(const InferenceModel& model,
                                     const std::vector<NodeKind>& nodes, const Settings& settings);

 private:
  static constexpr size_t kEntries = 4096;
  HookMetrics& metrics_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Verdict>> verdicts_;
};

}  // namespace ashlar::hooks
