// Everything that was decided for one start, and why. Made once by MakePlan, a pure function; never
// changed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "device/row.h"
#include "model/config.h"
#include "plan/cache_spec.h"
#include "plan/refusal.h"
#include "probe/platform.h"
#include "spec/spec.h"

namespace ashlar {

// How latent attention made of the plugin's ops is shown, which no row carries out.
inline constexpr std::string_view kOpDriven = "(op-driven)";

// Layers of one KV group that one row carries out with one geometry.
struct AttentionGroup {
  int index = 0;                      // within the KV group
  std::vector<int> layers;            // model layer indices
  LayerSpec layer;                    // the geometry they share
  std::string row;                    // the kernel that runs; "": none, as reason says
  bool op_driven = false;             // latent attention made of the plugin's ops, without a row
  std::string requested;              // what the spec asked for, or "auto"
  std::string reason;                 // "rank 0 of 2 valid", "forced by backends.default"
  std::vector<Candidate> candidates;  // every row considered, by rank
  // What is shown as the backend: the row, "(op-driven)" or "".
  std::string_view backend() const { return op_driven ? kOpDriven : std::string_view(row); }
};

// One step of the way to the block size that is used: each change says why.
struct BlockStep {
  std::string stage;  // requested | default | preferred | common | search | align | kernel
  int tokens = 0;
  std::string reason;
};

// Byte strides of the logical [layer, block, head slot, token, content] order, over manager blocks.
using KvStrides = std::array<int64_t, 5>;

// Layers that share one block table.
struct KvGroup {
  int index = 0;
  std::string
      name;  // stable: "full_attention", "sliding_window"; a number follows when several are alike
  KvKind kind = KvKind::kFull;
  int window = 0;
  std::vector<int> layers;  // model layer indices, in slot order
  std::vector<AttentionGroup> attention;
  DType dtype = DType::kBF16;  // of K and V
  CacheSpec cache;             // what one layer caches
  int block_tokens = 0;        // manager block
  int kernel_block_tokens = 0;
  std::vector<BlockStep> block_steps;
  // Geometry of one layer's page of one manager block: [H, N, C], C in bytes.
  int64_t head_slots = 0, states = 0, content_bytes = 0;
  int64_t page_bytes = 0;  // H * N * C, and padding
  KvStrides strides{};
  int64_t offset = 0;  // of layer slot 0, block 0 in the arena
  int64_t blocks = 0;  // manager blocks in the pool of this group; block 0 is the null block
  int64_t used_bytes() const { return head_slots * states * content_bytes; }  // of a page
  bool padded() const { return page_bytes > used_bytes(); }
  int64_t bytes() const { return page_bytes * static_cast<int64_t>(layers.size()) * blocks; }
};

struct MemoryBudget {
  int64_t free_bytes = 0;  // of the device when probed
  int64_t weight_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t graph_bytes = 0;     // reserve for captured graphs
  int64_t kv_limit_bytes = 0;  // what the spec allows
  int64_t kv_bytes = 0;        // what the arena takes: every pool, one after the other
  int64_t sequence_bytes = 0;  // of one sequence of the context length, all groups
  double sequences = 0;        // of the context length that the pools hold together
};

struct Plan {
  std::string model_name;
  ModelConfig model;
  std::string platform;       // cpu | reference | cuda | hip
  std::string platform_name;  // machine or profile
  int device = 0;             // index into Platform::devices
  int device_number = 0;      // of the platform, as its plugin counts
  std::string product;
  int threads = 0;
  bool invariant = false;
  std::string quantization;  // of weights by the spec: fp8; "" leaves them as they are stored
  std::vector<KvGroup> groups;
  KvLayout layout = KvLayout::kLBHNC;
  std::string layout_reason;
  int selector_calls = 0;          // one an attention group that needs a row
  int cache_block_tokens = 0;      // smallest of the group blocks
  int hash_block_tokens = 0;       // unit of prefix reuse
  int scheduler_block_tokens = 0;  // least common multiple of the group blocks
  MemoryBudget memory;
  int64_t context_length = 0;  // tokens, after cutting to what fits
  std::string context_reason;
  int max_sequences = 0, batch_tokens = 0;
  std::vector<std::string>
      notes;  // said once in the log and shown in every form: what was cut, padded, left out
  std::string spec_digest;
  std::string hash;  // over what peers must agree on; never counts or free bytes
};

// Facts of the checkpoint that planning needs beyond its geometry.
struct WeightFacts {
  int64_t bytes = 0;  // of all tensors
};

// All refusals of every group are in the problems when there is no plan.
Result<Plan> MakePlan(const Spec& spec, const Platform& platform, const ModelConfig& model,
                      const WeightFacts& weights);

// The same with the readiness check that the first problem belongs to: "source", "platform",
// "backends", "blocks" or "shapes"; "" when there is a plan.
struct PlanAttempt {
  std::optional<Plan> plan;
  Problems problems;
  std::string check;
};
PlanAttempt TryPlan(const Spec& spec, const Platform& platform, const ModelConfig& model,
                    const WeightFacts& weights);

// Why this plan can be shown but not served, by the rows of the plugins that are loaded: an
// architecture without a forward pass, a planned row, a row of another plugin than the rest.
Problems CheckServable(const Plan& plan, const std::vector<AttentionRow>& rows);

// For a person, on one screen: groups, chosen rows and why, what stands against each row that would
// be faster and the other rows in brief, block sizes step by step, layout, memory. `full`: every
// candidate with all of its reasons, every layer and stride.
std::string ToText(const Plan& plan, bool full = false);
Json ToJson(const Plan& plan);
std::string ToYaml(const Plan& plan);

// One line per attention group, then the layout line; always logged.
std::vector<std::string> SelectionLines(const Plan& plan);

}  // namespace ashlar
