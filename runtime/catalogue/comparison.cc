#include "catalogue/comparison.h"

#include <fmt/format.h>

#include "catalogue/reference_plan.h"

namespace ashlar {
namespace {

std::string Line(std::string_view what, std::string_view theirs, std::string_view ours) {
  return fmt::format("{}: vLLM would choose {}, you get {}", what, theirs, ours);
}

std::string Theirs(const ReferencePlan& plan, size_t index) {
  if (index >= plan.attention.size()) return "";
  const VllmChoice& choice = plan.attention[index].choice;
  if (choice.error != VllmError::kNone) return fmt::format("nothing ({})", Name(choice.error));
  return std::string(choice.chosen);
}

std::string Ours(const std::optional<Plan>& plan, size_t index) {
  if (!plan) return "";
  for (const KvGroup& group : plan->groups) {
    if (index < group.attention.size()) return std::string(group.attention[index].backend());
    index -= group.attention.size();
  }
  return "";
}

std::string OrNothing(const std::string& backend) { return backend.empty() ? "nothing" : backend; }

}  // namespace

Result<std::vector<std::string>> CompareWithVllm(const Spec& spec, const Platform& platform,
                                                 const ModelConfig& model,
                                                 const WeightFacts& weights,
                                                 const VllmAssume& assume,
                                                 const std::string& told) {
  Spec theirs = spec;
  if (!told.empty()) theirs.backends = {{"default", {told, {}, {}}}};
  Result<ReferencePlan> reference = PlanLikeReference(theirs, platform, model, weights, assume);
  if (!reference) return reference.problems();
  PlanAttempt attempt = TryPlan(spec, platform, model, weights);

  // Both plans form the same attention groups in the same order.
  std::vector<std::string> lines;
  for (size_t i = 0; i < reference->attention.size(); ++i) {
    std::string chosen = Theirs(*reference, i), got = Ours(attempt.plan, i);
    if (!chosen.empty() || !got.empty())
      lines.push_back(Line(reference->attention[i].name, OrNothing(chosen), OrNothing(got)));
  }
  const ReferenceBlocks& blocks = reference->blocks;
  bool solved = blocks.tokens > 0 && blocks.error == BlockError::kNone;
  lines.push_back(
      Line("block size",
           solved ? std::to_string(blocks.tokens) : fmt::format("nothing ({})", reference->why),
           attempt.plan ? std::to_string(attempt.plan->cache_block_tokens) : "nothing"));
  if (!attempt.plan) lines.push_back("no plan here: " + attempt.problems.front().Text());
  return lines;
}

}  // namespace ashlar
