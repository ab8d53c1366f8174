// One sequence's next token in one launch: a cluster of blocks has a KV head, see StepBlock.
#pragma once

#include "hopper_step_block.h"

namespace ashlar::hopper {

struct StepParams {
  ashlar_qkv_prepare prepare;
  gpu_kernels::AttentionParams attention;
};

#if defined(ASHLAR_HOPPER)

GPU_DEVICE StepPair PairOf(const StepParams& p, int kv_head) {
  const ashlar_qkv_prepare& a = p.prepare;
  const ashlar_attention& b = p.attention.args;
  StepPair pair;
  pair.kv_head = kv_head;
  pair.group = p.attention.group;
  pair.qkv = static_cast<const char*>(a.qkv.data);
  pair.q_out = static_cast<char*>(a.q_out.data);
  pair.out = static_cast<char*>(b.out.data);
  pair.q_norm = static_cast<const float*>(a.q_norm.data);
  pair.k_norm = static_cast<const float*>(a.k_norm.data);
  pair.inv_freq = a.inv_freq;
  pair.position = a.positions;
  pair.context = b.context;
  pair.block_table = b.block_table;
  pair.slot = a.slots;
  pair.kv_base = static_cast<char*>(a.kv.base);
  pair.window = b.window;
  return pair;
}

// Keys of earlier steps come before the kernel ahead has ended.
template <class Shape>
GPU_DEVICE void RunStep(const StepParams& p, typename Shape::Shared& shared) {
  using Block = StepBlock<Shape>;
  const int kv_head = gpu::BlockX() / Shape::kRanks;
  StepTurns turns;
  Block block(p.prepare, PairOf(p, kv_head), WalkOf(p.attention, 0, kv_head), shared);
  block.FindUnits(*p.attention.args.context);
  if (gpu::ThreadX() == 0) {
    Block::InitBarriers(shared);
    block.ExpectSums(turns);
  }
  ArriveCluster();
  block.FetchFirst();
  block.Ready();
  gpu::SyncBlock();
  AwaitCluster();  // before anything is put into another block
  gpu::WaitForPrevious();
  gpu::ReleaseNext();  // no sooner, or kernels further on would take room from this one's next
  NoSecond none;
  block.Attend(p.attention.scale_log2, turns, none, false);
  block.AddUp(turns);
}

#endif

template <class Stored, int kHeadDim, int kRanks>
GPU_KERNEL void GPU_BOUNDS(StepShape<Stored, kHeadDim, kRanks>::kThreads, 2)
    StepKernel(GPU_GRID_CONSTANT const StepParams params) {
#if defined(ASHLAR_HOPPER)
  using Shape = StepShape<Stored, kHeadDim, kRanks>;
  auto& shared = *reinterpret_cast<typename Shape::Shared*>(gpu::SharedMemory());
  RunStep<Shape>(params, shared);
#endif
}

}  // namespace ashlar::hopper
