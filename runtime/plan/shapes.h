// The shape check: three sources that never copy from each other must agree before anything is
// served.
//   P: spec arithmetic (page = H * N * C from the layer's heads and the KV dtype)
//   D: the row's own declaration of its logical dimensions
//   V: base, size and strides of the view really handed to the kernel
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace ashlar {

// D: what a row expects one kernel block of one layer to be, in the order [H, N, C]; C in bytes.
struct DeclaredShape {
  int64_t head_slots = 0, states = 0, content_bytes = 0;
  bool planes = false;  // the slots are the row's own, not KV heads: the same numbers mean another
                        // order
};
DeclaredShape Declare(const AttentionRow& row, const LayerSpec& layer, int kernel_block_tokens,
                      DType kv_dtype);
// The same of the ops that latent attention is made of where no row is registered.
DeclaredShape DeclareLatentOps(const LayerSpec& layer, int kernel_block_tokens, DType kv_dtype);

// V: filled by kv from the allocation and the pointers it will pass, never from the plan's numbers.
struct AllocatedView {
  int group = 0, layer_slot = 0;
  int64_t allocation_bytes = 0;                                 // size of the one arena
  int64_t base_offset = 0;                                      // of the view's base in the arena
  int64_t block_stride = 0, head_stride = 0, token_stride = 0;  // bytes
  int64_t blocks = 0;                                           // kernel blocks
  int block_tokens = 0;                                         // kernel block
  int64_t content_bytes = 0;  // bytes the kernel reads at one (block, head, token)
  int64_t head_slots = 0;
};

// P against D, for each attention group of the plan. Called by MakePlan.
Problems CheckDeclaredShapes(const Plan& plan, const std::vector<AttentionRow>& rows);

// P and D against V: strides as the layout says, the last byte inside the allocation, no two pages
// of different (group, layer, block) overlapping. Called once by kv, before the first launch.
Problems CheckAllocatedViews(const Plan& plan, const std::vector<AttentionRow>& rows,
                             const std::vector<AllocatedView>& views);

}  // namespace ashlar
