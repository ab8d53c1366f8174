// Whether a model may be started at all, in the runtime's own words: its document is read and
// planned for each kind of node before any image is pulled.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "operator-hooks/device_wish.h"
#include "operator-hooks/inference_model.h"
#include "operator-hooks/nodes.h"
#include "operator-hooks/settings.h"
#include "spec/spec.h"

namespace ashlar::hooks {

// What the planner expects on one kind of node.
struct NodePlan {
  std::string nodes;  // the kind's name
  int count = 0;      // nodes of it; 0: a captured platform
  bool fits = false;
  std::string backends;  // "full_attention=CPU_PAGED"
  Problems problems;
};

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

// The ModelSpec in a document, as Judge reads it; its problems name fields of the custom resource.
Result<Spec> ReadDocument(const std::string& document);

// Verdicts by what they depend on. Saves time and changes nothing. For any thread.
class VerdictMemo {
 public:
  std::shared_ptr<const Verdict> For(const InferenceModel& model,
                                     const std::vector<NodeKind>& nodes, const Settings& settings);

 private:
  static constexpr size_t kEntries = 4096;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Verdict>> verdicts_;
};

}  // namespace ashlar::hooks
