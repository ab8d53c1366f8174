#include "kv/arena.h"

#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace ashlar {
namespace {

// A manager block of N tokens read as r kernel blocks of N / r: the blocks lie closer, and heads
// that stand outside the tokens of a block do too.
void SplitBlocks(ashlar_kv_view& view, int r) {
  bool heads_inside_block =
      view.head_stride > view.token_stride && view.head_stride <= view.block_stride;
  if (heads_inside_block) view.head_stride /= r;
  view.block_stride /= r;
  view.blocks *= r;
}

LayerKv ViewOf(const KvGroup& group, const AttentionGroup& attention, int64_t layer_slot,
               std::byte* arena, int row) {
  LayerKv kv;
  kv.group = group.index;
  kv.row = row;
  kv.view.base = arena + group.offset + layer_slot * group.strides[0];
  kv.view.block_stride = group.strides[1];
  kv.view.head_stride = group.strides[2];
  kv.view.token_stride = group.strides[3];
  kv.view.blocks = group.blocks;
  kv.view.dtype = static_cast<ashlar_dtype>(group.dtype);
  kv.view.block_tokens = group.kernel_block_tokens;
  kv.view.kv_heads = attention.layer.kv_heads;
  kv.view.head_dim = attention.layer.head_dim;
  kv.view.head_dim_v = attention.layer.head_dim_v;
  SplitBlocks(kv.view, group.block_tokens / group.kernel_block_tokens);
  return kv;
}

const AttentionGroup* Owner(const KvGroup& group, int layer) {
  for (const AttentionGroup& attention : group.attention) {
    for (int member : attention.layers) {
      if (member == layer) return &attention;
    }
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<KvArena>> KvArena::Create(const Plan& plan, const Device& device,
                                                 KvAllocation memory) {
  auto arena = std::make_unique<KvArena>();
  arena->memory_ = std::move(memory);
  arena->layers_.resize(plan.model.layers.size());
  auto* base = static_cast<std::byte*>(arena->memory_.buffer.data());
  Problems missing;
  for (const KvGroup& group : arena->groups()) {
    for (size_t slot = 0; slot < group.layers.size(); ++slot) {
      int layer = group.layers[slot];
      const AttentionGroup* attention = Owner(group, layer);
      Check(attention != nullptr, "every layer of a KV group is in one of its attention groups");
      int row = device.plugin().RowIndex(attention->row);
      if (row < 0) {
        missing.push_back({"kvGroups." + group.name, "the plugin has no row " + attention->row,
                           "the row that was planned", "install the plugin of this version"});
      }
      arena->layers_[layer] = ViewOf(group, *attention, static_cast<int64_t>(slot), base, row);
    }
  }
  if (!missing.empty()) return missing;
  Plan allocated = plan;
  allocated.groups = arena->groups();
  Problems wrong = CheckAllocatedViews(allocated, device.plugin().rows(), arena->Views());
  if (!wrong.empty()) return wrong;
  return arena;
}

std::vector<AllocatedView> KvArena::Views() const {
  std::vector<AllocatedView> views;
  const auto* arena = static_cast<const std::byte*>(memory_.buffer.data());
  for (const KvGroup& group : groups()) {
    for (size_t slot = 0; slot < group.layers.size(); ++slot) {
      const ashlar_kv_view& view = layers_[group.layers[slot]].view;
      const DTypeInfo& dtype = Info(static_cast<DType>(view.dtype));
      AllocatedView seen;
      seen.group = layers_[group.layers[slot]].group;
      seen.layer_slot = static_cast<int>(slot);
      seen.allocation_bytes = bytes();
      seen.base_offset = static_cast<const std::byte*>(view.base) - arena;
      seen.block_stride = view.block_stride;
      seen.head_stride = view.head_stride;
      seen.token_stride = view.token_stride;
      seen.blocks = view.blocks;
      seen.block_tokens = view.block_tokens;
      seen.content_bytes = int64_t{view.head_dim + view.head_dim_v} * dtype.bytes / dtype.elements;
      seen.head_slots = view.kv_heads;
      views.push_back(seen);
    }
  }
  return views;
}

}  // namespace ashlar
