// Where keys were divided over blocks: the second kernel, which adds the parts up. Bound by bytes.
#pragma once

#include "attention_rows.h"

namespace ashlar::gpu_kernels {

// Adds up the splits of one sequence and KV head; a block has one thread a column.
template <int kHeadDim>
GPU_KERNEL void CombineKernel(const AttentionParams p) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  constexpr int kPitch = kHeadDim + 2;
  const RowTile tile = TileOf(p, gpu::BlockZ(), 0);
  const int row = gpu::BlockX(), column = gpu::ThreadX(), kv_head = gpu::BlockY();
  if (tile.rows > kTile || row >= tile.rows || column >= kHeadDim) return;
  const int splits = tile.context / p.split_keys + (tile.context % p.split_keys != 0);
  int first = 0;
  if (p.args.window > 0) {
    const int oldest = tile.context - tile.queries - p.args.window + 1;
    first = oldest > 0 ? oldest / p.split_keys : 0;
  }
  const float* parts =
      p.parts +
      ((int64_t{tile.sequence} * p.args.kv.kv_heads + kv_head) * p.splits * kTile + row) * kPitch;
  float largest = -INFINITY, total = 0, value = 0;
  for (int split = first; split < splits; ++split) {
    largest = fmaxf(largest, parts[int64_t{split} * kTile * kPitch + kHeadDim]);
  }
  for (int split = first; split < splits; ++split) {
    const float* part = parts + int64_t{split} * kTile * kPitch;
    const float factor = part[kHeadDim] == -INFINITY ? 0 : exp2f(part[kHeadDim] - largest);
    total += factor * part[kHeadDim + 1];
    value += factor * part[column];
  }
  const int64_t token = tile.query_start + row / p.group;
  const int head = kv_head * p.group + row % p.group;
  StoreAs(p.args.out.dtype, static_cast<char*>(p.args.out.data) + token * p.out_row_bytes,
          int64_t{head} * kHeadDim + column, value / total);
}

}  // namespace ashlar::gpu_kernels
