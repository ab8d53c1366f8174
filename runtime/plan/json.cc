#include "plan/plan.h"
#include "plan/yaml.h"

namespace ashlar {
namespace {

Json RefusalJson(const Candidate& candidate, RefusalReason reason) {
  Explanation words = Explain(candidate, reason);
  Json json = {{"reason", Label(reason)}, {"text", Text(reason)}, {"detail", words.detail}};
  if (!words.counterfactual.empty()) json["validWith"] = words.counterfactual;
  return json;
}

Json CandidateJson(const Candidate& candidate) {
  Json json = {{"backend", candidate.row},
               {"platform", candidate.platform},
               {"rank", candidate.rank},
               {"verification", Name(candidate.verification)},
               {"valid", candidate.refusals.empty()}};
  for (RefusalReason reason : candidate.refusals)
    json["refusals"].push_back(RefusalJson(candidate, reason));
  if (!candidate.chosen_with.empty()) json["chosenWith"] = candidate.chosen_with;
  return json;
}

Json AttentionJson(const AttentionGroup& attention) {
  Json json = {{"index", attention.index},
               {"layers", attention.layers},
               {"heads", attention.layer.heads},
               {"kvHeads", attention.layer.kv_heads},
               {"headDim", attention.layer.head_dim},
               {"headDimV", attention.layer.head_dim_v},
               {"requestedBackend", attention.requested},
               {"backend", attention.backend()},
               {"reason", attention.reason},
               {"candidates", Json::array()}};
  for (const Candidate& candidate : attention.candidates)
    json["candidates"].push_back(CandidateJson(candidate));
  return json;
}

Json GroupJson(const KvGroup& group) {
  Json json = {{"index", group.index},
               {"name", group.name},
               {"kind", Name(group.kind)},
               {"window", group.window},
               {"layers", group.layers},
               {"dtype", Info(group.dtype).name},
               {"blockSize", group.block_tokens},
               {"kernelBlockSize", group.kernel_block_tokens},
               {"blockSteps", Json::array()},
               {"page",
                {{"headSlots", group.head_slots},
                 {"states", group.states},
                 {"contentBytes", group.content_bytes},
                 {"bytes", group.page_bytes}}},
               {"strides", group.strides},
               {"offset", group.offset},
               {"blocks", group.blocks},
               {"bytes", group.bytes()},
               {"attention", Json::array()}};
  for (const BlockStep& step : group.block_steps) {
    Json item = {{"stage", step.stage}};
    if (step.tokens > 0) item["tokens"] = step.tokens;
    item["reason"] = step.reason;
    json["blockSteps"].push_back(std::move(item));
  }
  for (const AttentionGroup& attention : group.attention)
    json["attention"].push_back(AttentionJson(attention));
  return json;
}

}  // namespace

Json ToJson(const Plan& plan) {
  Json json = {{"model", plan.model_name},
               {"architecture", plan.model.architecture},
               {"platform", plan.platform},
               {"platformName", plan.platform_name},
               {"device", plan.device_number},
               {"product", plan.product},
               {"threads", plan.threads},
               {"numerics", plan.invariant ? "invariant" : "fast"},
               {"contextLength", plan.context_length},
               {"contextReason", plan.context_reason},
               {"limits", {{"sequences", plan.max_sequences}, {"batchTokens", plan.batch_tokens}}},
               {"layout", Name(plan.layout)},
               {"layoutReason", plan.layout_reason},
               {"cacheBlockSize", plan.cache_block_tokens},
               {"hashBlockSize", plan.hash_block_tokens},
               {"schedulerBlockSize", plan.scheduler_block_tokens},
               {"selectorCalls", plan.selector_calls},
               {"kvGroups", Json::array()},
               {"memory",
                {{"freeBytes", plan.memory.free_bytes},
                 {"weightBytes", plan.memory.weight_bytes},
                 {"workspaceBytes", plan.memory.workspace_bytes},
                 {"graphBytes", plan.memory.graph_bytes},
                 {"kvLimitBytes", plan.memory.kv_limit_bytes},
                 {"kvBytes", plan.memory.kv_bytes},
                 {"sequenceBytes", plan.memory.sequence_bytes},
                 {"sequences", plan.memory.sequences}}},
               {"notes", plan.notes},
               {"specDigest", plan.spec_digest},
               {"hash", plan.hash}};
  if (!plan.quantization.empty()) json["quantization"] = plan.quantization;
  for (const KvGroup& group : plan.groups) json["kvGroups"].push_back(GroupJson(group));
  return json;
}

std::string ToYaml(const Plan& plan) { return YamlOf(ToJson(plan)); }

}  // namespace ashlar
