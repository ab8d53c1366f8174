#include "plan/hash.h"

#include "base/sha256.h"

namespace ashlar {

namespace {

Json Rows(const KvGroup& group) {
  Json rows = Json::array();
  for (const AttentionGroup& attention : group.attention) rows.push_back(attention.row);
  return rows;
}

}  // namespace

std::string PlanHash(const Plan& plan) {
  Json json = {{"layout", Name(plan.layout)},
               {"hashBlock", plan.hash_block_tokens},
               {"numerics", plan.invariant ? "invariant" : "fast"},
               {"groups", Json::array()}};
  if (!plan.quantization.empty()) json["quantization"] = plan.quantization;
  for (const KvGroup& group : plan.groups) {
    const LayerSpec& layer = group.attention.front().layer;
    json["groups"].push_back({{"kind", Name(group.kind)},
                              {"window", group.window},
                              {"layers", group.layers},
                              {"dtype", Info(group.dtype).name},
                              {"kvHeads", layer.kv_heads},
                              {"headDim", layer.head_dim},
                              {"headDimV", layer.head_dim_v},
                              {"block", group.block_tokens},
                              {"kernelBlock", group.kernel_block_tokens},
                              {"page", {group.head_slots, group.states, group.content_bytes}},
                              {"pageBytes", group.page_bytes},
                              {"rows", Rows(group)}});
  }
  return Sha256Hex(CanonicalJson(json)).substr(0, 16);
}

}  // namespace ashlar
