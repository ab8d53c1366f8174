// A plan for a toy model whose KV entry is 8 bytes a head, on the reference plugin.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "device/device.h"
#include "kv/arena.h"
#include "plan/layout.h"
#include "plan/plan.h"

namespace ashlar::toy {

struct Group {
  KvKind kind = KvKind::kFull;
  int window = 0;
  int layers = 2;
  int block_tokens = 16;
  int kernel_block_tokens = 0;  // 0: the same
  int64_t blocks = 200;         // usable ones
};

struct Shape {
  std::vector<Group> groups = {{}};
  KvLayout layout = KvLayout::kLBHNC;
  int kv_heads = 2;
  int64_t vocab = 64;
  int64_t context_length = 512;
  std::vector<int32_t> eos = {0};
};

// Block bookkeeping of a group whose `layers` and one layer's spec are known.
inline KvGroup MakeGroup(const Group& from, int index, std::vector<int> layers,
                         const LayerSpec& layer, DType dtype) {
  KvGroup group;
  group.index = index;
  group.kind = from.kind;
  group.name = std::string(Name(from.kind)) + (index > 0 ? std::to_string(index) : "");
  group.window = from.window;
  group.layers = layers;
  group.dtype = dtype;
  group.block_tokens = from.block_tokens;
  group.kernel_block_tokens =
      from.kernel_block_tokens > 0 ? from.kernel_block_tokens : from.block_tokens;
  group.head_slots = layer.kv_heads;
  group.states = from.block_tokens;
  group.content_bytes = *StorageBytes(dtype, layer.head_dim + layer.head_dim_v);
  group.page_bytes = group.head_slots * group.states * group.content_bytes;
  group.blocks = from.blocks + 1;
  AttentionGroup attention;
  attention.layers = std::move(layers);
  attention.layer = layer;
  attention.row = "REFERENCE";
  group.attention.push_back(std::move(attention));
  return group;
}

inline Plan MakePlan(const Shape& shape) {
  Plan plan;
  plan.platform = "reference";
  plan.invariant = true;
  plan.layout = shape.layout;
  plan.context_length = shape.context_length;
  plan.model.vocab = shape.vocab;
  plan.model.eos = shape.eos;
  for (const Group& from : shape.groups) {
    LayerSpec layer;
    layer.kind = from.kind;
    layer.heads = layer.kv_heads = shape.kv_heads;
    layer.head_dim = layer.head_dim_v = 1;
    layer.window = from.window;
    layer.scale = 1;
    std::vector<int> layers;
    for (int i = 0; i < from.layers; ++i) {
      layers.push_back(static_cast<int>(plan.model.layers.size()));
      plan.model.layers.push_back(layer);
    }
    plan.groups.push_back(
        MakeGroup(from, static_cast<int>(plan.groups.size()), layers, layer, DType::kF32));
  }
  Check(PlaceGroups(plan.groups, plan.layout).has_value(), "the toy's pools fit");
  return plan;
}

// A plugin of this build, as `numerics` opens it.
inline std::unique_ptr<Device> OpenPlugin(const std::string& name, int threads, bool invariant) {
  auto plugin =
      Plugin::Load(std::string(ASHLAR_BUILD_DIR) + "/lib/ashlar/libashlar_" + name + ".so");
  DeviceOptions options;
  options.threads = threads;
  options.invariant = invariant;
  return std::move(*Device::Open(**plugin, options));
}
inline std::unique_ptr<Device> OpenInvariant(const std::string& name, int threads = 1) {
  return OpenPlugin(name, threads, true);
}
inline std::unique_ptr<Device> OpenReference() { return OpenInvariant("reference"); }

// The pools as planned.
inline Result<std::unique_ptr<KvArena>> MakeArena(const Plan& plan, const Device& device) {
  Result<KvAllocation> memory = AllocateKv(plan, device, kAnyRoom);
  if (!memory) return memory.problems();
  return KvArena::Create(plan, device, std::move(*memory));
}

}  // namespace ashlar::toy
