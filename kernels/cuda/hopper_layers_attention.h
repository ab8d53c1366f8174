// Attention among the phases of a kernel of whole layers: clusters of blocks take the pairs of a
// token and a KV head in turn, heads of one token to different clusters, and do for each what
// StepBlock does. Keys of earlier steps come while other phases run, and do not wait for what those
// copy in groups. Bound by latency, of long contexts by bytes.
//
// 1. A wave's stages hold keys from FetchFirst on, and its sums in Share: both end before the next
//    FetchFirst, between which and Share there is a SyncBlock. So there is between what reads the
//    tables and what fills them, and between that and the next that reads.
// 2. A block puts sums into another's room only when that has read what was there two pairs ago:
//    it has the sums of the pair between from all of that block's threads, who shared them after
//    they had added up the one before. The barrier of the room is in its next phase then.
// 3. A pair without keys is one for all blocks of the cluster: none shares, and no room is used.
// 4. Words of out are written when all that the pair needs of qkv has been read: every block has
//    all blocks' sums, and of an idle pair one wave reads and writes.
#pragma once

#include "gpu/layers.h"
#include "gpu/prepare_eights.h"
#include "hopper_step_block.h"

namespace ashlar::hopper {

// sizeof(Shared) is what a block needs of shared memory, at a multiple of 16 bytes.
template <class Stored, int kHeadDim, int kRanks>
using LayerStep = StepShape<Stored, kHeadDim, kRanks, 8, kHeadDim == 64 ? 2 : 1, false>;

// Whether LayerAttention carries out every layer's. Of p.attention the cache is that of p.prepare.
inline bool TakesAttention(const gpu_kernels::LayersParams& p) {
  const ashlar_qkv_prepare& a = p.prepare;
  const ashlar_kv_view& kv = a.kv;
  const auto aligned = [](const void* data, int64_t bytes) {
    return (static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)) | bytes) % 16 == 0;
  };
  const int64_t q_heads = a.q_out.shape[1];
  bool takes = gpu_kernels::TakesEights(a) && a.qkv.dtype == ASHLAR_BF16 &&
               a.q_out.dtype == ASHLAR_BF16 && p.attention.out.dtype == ASHLAR_BF16 &&
               (kv.dtype == ASHLAR_BF16 || kv.dtype == ASHLAR_F8_E4M3) &&
               (kv.head_dim == 64 || kv.head_dim == 128) && q_heads % kv.kv_heads == 0 &&
               q_heads <= int64_t{kMostStepGroup} * kv.kv_heads && p.attention.max_query == 1;
  for (int layer = 0; layer < p.layers; ++layer) {
    const gpu_kernels::LayerPlaces& places = p.layer[layer];
    const bool rotates_part = places.inv_freq != nullptr && a.rotary_dim != kv.head_dim;
    takes = takes && aligned(places.kv_base, 0) && !rotates_part;
  }
  return takes;
}

#if defined(ASHLAR_HOPPER)

// One of each thread of a block, for a whole launch; all threads of the grid's blocks call each
// function in this order: Start, and for each layer Run, FetchAhead. Turns of barriers
// are the thread's own. Of a WeightRing it is the Keys.
template <class Stored, int kHeadDim, int kRanks>
class LayerAttention {
 public:
  using Shape = LayerStep<Stored, kHeadDim, kRanks>;
  using Shared = typename Shape::Shared;
  using LayersParams = gpu_kernels::LayersParams;

  // Words of qkv and of out, rows of all heads.
  GPU_DEVICE LayerAttention(const LayersParams& params, uint64_t* qkv, uint64_t* out,
                            Shared& shared)
      : LayerAttention(params, qkv, out, shared, 0) {
    if (first_ < pairs_) context_ = p_.attention.context[first_ / kv_heads_];
  }

  // Of a wave's second unit of keys, of the first pair and of earlier steps: what its room takes;
  // whether there is one in a layer, which looks it up; and then its copies in the thread's next
  // group.
  static constexpr int kKeyBytes = Shape::kStages == 1 ? Shape::kStageBytes : 0;
  GPU_DEVICE bool FindKeys(int layer) {
    if (kKeyBytes == 0 || first_ >= pairs_) return false;
    found_ = FindApart(p_, s_, context_, layer);
    return found_.exists;
  }
  GPU_DEVICE void FetchKeys(int layer, char* to) const {
    FetchApart(p_, s_, context_, layer, to, found_);
  }

  // Before or after WaitForPrevious. Meets the block, and the cluster.
  GPU_DEVICE void Start() {
    if (gpu::ThreadX() == 0) Block::InitBarriers(s_);
    gpu::SyncBlock();
    ArriveCluster();
    Fetch(0);
    AwaitCluster();  // before anything is put into another block
  }

  // As heads of qkv come: the rows of out, and entries of the cache. `second`: see StepBlock.
  template <class Second>
  GPU_DEVICE void Run(int layer, uint32_t round, Second& second) {
    if (first_ >= pairs_) return;
    Block block = BlockOf(layer, first_, round);
    block.FindUnits(context_);
    block.FindSource();
#pragma unroll 1
    for (int pair = first_; pair < pairs_; pair += clusters_) {
      if (gpu::ThreadX() == 0 && !block.IsIdle()) block.ExpectSums(turns_);
      const bool holds = pair == first_ && second.HoldsKeys();
      block.Attend(p_.attention.scale * 1.4426950408889634f, turns_, second, holds);
      Block next = block;
      const bool goes_on = pair + clusters_ < pairs_;
      if (goes_on) {
        gpu::SyncBlock();  // stages and tables are free
        next = BlockOf(layer, pair + clusters_, round);
        next.FindUnits(p_.attention.context[(pair + clusters_) / kv_heads_]);
        next.FindSource();
        next.FetchFirst();
        next.FillTables();
      }
      if (!block.IsIdle()) block.AddUp(turns_);
      if (goes_on) gpu::SyncBlock();  // tables are filled
      block = next;
    }
  }

  // For the next layer what does not depend on its qkv: tables, and keys of earlier steps.
  GPU_DEVICE void FetchAhead(int layer) {
    if (layer + 1 >= p_.layers || first_ >= pairs_) return;
    gpu::SyncBlock();  // stages and tables are free
    Fetch(layer + 1);
  }

 private:
  using Block = StepBlock<Shape>;

  // A second unit's.
  struct Found {
    bool exists = false;
    typename Block::Blocks blocks = {};
  };

  GPU_DEVICE LayerAttention(const LayersParams& params, uint64_t* qkv, uint64_t* out,
                            Shared& shared, int context)
      : p_(params), qkv_(qkv), out_(out), s_(shared), context_(context) {}

  // Both seldom, from among products, whose registers they leave alone.
  GPU_APART static Found FindApart(const LayersParams& params, Shared& shared, int context,
                                   int layer) {
    const LayerAttention own(params, nullptr, nullptr, shared, context);
    const Block block = own.Units(layer);
    Found found;
    found.exists = block.HasSecond();
    if (found.exists) block.LookUpSecond(found.blocks);
    return found;
  }
  GPU_APART static void FetchApart(const LayersParams& params, Shared& shared, int context,
                                   int layer, char* to, Found found) {
    const LayerAttention own(params, nullptr, nullptr, shared, context);
    own.Units(layer).FetchSecond(to, found.blocks);
  }

  GPU_DEVICE Block Units(int layer) const {
    Block block = BlockOf(layer, first_, 0);
    block.FindUnits(context_);
    return block;
  }

  GPU_DEVICE void Fetch(int layer) {
    if (first_ >= pairs_) return;
    Block block = Units(layer);
    block.FetchFirst();
    block.FillTables();
    gpu::SyncBlock();  // tables are filled
  }

  GPU_DEVICE Block BlockOf(int layer, int number, uint32_t round) const {
    const gpu_kernels::LayerPlaces& places = p_.layer[layer];
    const ashlar_qkv_prepare& a = p_.prepare;
    const int token = number / kv_heads_, q_heads = group_ * kv_heads_;
    StepPair pair;
    pair.kv_head = number - token * kv_heads_;
    pair.group = group_;
    pair.qkv =
        reinterpret_cast<const char*>(qkv_ + token * (q_heads + 2 * kv_heads_) * (kHeadDim / 2));
    pair.q_out = nullptr;
    pair.out = reinterpret_cast<char*>(out_ + token * q_heads * (kHeadDim / 2));
    pair.q_norm = places.q_norm;
    pair.k_norm = places.k_norm;
    pair.inv_freq = places.inv_freq;
    pair.position = a.positions + token;
    pair.context = p_.attention.context + token;
    pair.block_table = places.block_table + token * places.table_stride;
    pair.slot = places.slots + token;
    pair.kv_base = places.kv_base;
    pair.window = places.window;
    pair.round = round;
    const ashlar_kv_view& kv = a.kv;
    const gpu_kernels::CacheWalk walk{pair.kv_base + pair.kv_head * kv.head_stride,
                                      pair.block_table,
                                      kv.block_stride,
                                      kv.token_stride,
                                      block_shift_,
                                      kv.block_tokens};
    return Block(a, pair, walk, s_);
  }
  GPU_DEVICE static int Log2(int tokens) {
    int shift = 0;
    while (1 << shift < tokens) ++shift;
    return 1 << shift == tokens ? shift : -1;
  }

  const LayersParams& p_;
  uint64_t *const qkv_, *const out_;
  Shared& s_;
  StepTurns turns_;
  const int kv_heads_ = p_.prepare.kv.kv_heads, pairs_ = p_.tokens * kv_heads_;
  const int group_ = static_cast<int>(p_.prepare.q_out.shape[1]) / kv_heads_;
  const int block_shift_ = Log2(p_.prepare.kv.block_tokens);
  const int first_ = gpu::BlockX() / Shape::kRanks, clusters_ = gpu::GridX() / Shape::kRanks;
  int context_ = 0;  // of the first pair's token
  Found found_;
};

#endif

}  // namespace ashlar::hopper
