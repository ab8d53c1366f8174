// One sequence's next token in one launch: its heads are prepared (norm, rotary embedding, cache)
// where they are needed, and attend. A cluster of blocks has a KV head; its waves divide the keys
// in turn, bring those of earlier steps before the kernel ahead has ended, and add up through each
// other's shared memory. Bound by latency, of long contexts by bytes.
//
// A row is a query head of the KV head's group. Lane l of a wave has a quarter of row l / 4, as the
// products take it: pairs of a rotary embedding are the lane's own. Rows past the group are, on the
// wave whose keys end with the new one, its K and its V.
#pragma once

#include "gpu/attention_sums.h"
#include "hopper_cluster.h"
#include "hopper_step_row.h"

namespace ashlar::hopper {

inline constexpr int kMostStepGroup = 6;  // query heads of a KV head: two rows are left
inline constexpr int kKeyRow = 6, kValueRow = 7;

struct StepParams {
  ashlar_qkv_prepare prepare;
  gpu_kernels::AttentionParams attention;
};

// kRanks blocks are a cluster.
template <class Stored, int kHeadDim, int kRanks>
struct StepShape {
  static constexpr bool kF8 = std::is_same_v<Stored, gpu_kernels::F8>;
  using Tile = gpu_kernels::CacheTile<Stored, kHeadDim>;
  using OwnSums = gpu_kernels::WaveSums<Stored, kHeadDim, 32, kF8>;
  static constexpr int kWaves = 6, kThreads = 32 * kWaves, kStages = 2;
  static constexpr int kStepKeys = OwnSums::kStepKeys;  // of one wave at a time
  static constexpr int kStageBytes = kStepKeys * Tile::kPitch;
  static constexpr int kColumns = kHeadDim / kRanks;  // that a block adds up
  static_assert(kColumns % 4 == 0);

  struct Shared {
    char stage[kWaves][kStages][kStageBytes];
    float totals[kWaves][OwnSums::kTotals];
    float values[kRanks][kMostStepGroup][kColumns];  // of each block's keys, see gpu_kernels::Sums
    float tops[kRanks][kMostStepGroup][2];           // and its weights' sum
    StepTables<kHeadDim> tables;
    uint64_t arrived;  // a Barrier
  };
};

#if defined(ASHLAR_HOPPER)

template <class Stored, int kHeadDim, int kRanks>
class StepBlock {
 public:
  using Shape = StepShape<Stored, kHeadDim, kRanks>;
  using Shared = typename Shape::Shared;
  GPU_DEVICE StepBlock(const StepParams& params, Shared& shared) : p_(params), s_(shared) {}

  GPU_DEVICE void Run() {
    FindUnits();
    if (thread_ == 0) {
      InitBarrier(&s_.arrived, 1);
      FenceBarriers();
      ArriveExpecting(&s_.arrived, kRanks * rows_.rows * (Shape::kColumns + 2) * 4);
    }
    ArriveCluster();
#pragma unroll
    for (int stage = 0; stage < Shape::kStages; ++stage) LookUp(unit_ + stage * kStride, stage);
#pragma unroll
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      Fetch(unit_ + stage * kStride, stage, stage);
    }
    FindPlaces();
    s_.tables.Fill(p_.prepare);
    gpu::SyncBlock();
    AwaitCluster();  // before anything is put into another block
    gpu::WaitForPrevious();
    gpu::ReleaseNext();  // no sooner, or kernels further on would take room from this one's next
    if (unit_ <= last_ || brings_) Prepare();
    math_.Begin(p_.attention, rows_, 0);
#pragma unroll 1
    for (int stage = 0; unit_ <= last_; unit_ += kStride, stage ^= 1) {
      gpu::WaitCopies<Shape::kStages - 1>();
      gpu::SyncWave<32>();
      if (unit_ == last_) PutNew(s_.stage[wave_][stage]);
      const int ahead = unit_ + Shape::kStages * kStride;
      LookUp(ahead, 0);
      Attend(s_.stage[wave_][stage]);
      gpu::SyncWave<32>();
      Fetch(ahead, stage, 0);
    }
    if (brings_) Keep();
    Share();
    AddUp();
  }

 private:
  using Tile = typename Shape::Tile;
  using OwnSums = typename Shape::OwnSums;
  using T = gpu_kernels::Multiplied<Stored>;
  using BF16 = gpu_kernels::BF16;
  using Row = StepRow<kHeadDim>;
  static constexpr int kRuns = Shape::kStepKeys / Tile::kRun, kChunks = Row::kChunks;
  static constexpr int kStride = kRanks * Shape::kWaves;  // units from a wave's to its next
  static constexpr int kBytes = sizeof(Stored);
  static_assert(Shape::kStages == 2);

  GPU_DEVICE void FindUnits() {
    rows_ = {0, 0, p_.attention.group, 0, 1, p_.attention.args.context[0]};
    newest_ = rows_.LastPosition();
    oldest_ = rows_.Oldest(p_.attention, newest_);
    last_ = newest_ < 0 ? -1 : newest_ / Shape::kStepKeys;
    const int own = rank_ + kRanks * wave_, first = oldest_ / Shape::kStepKeys;
    unit_ = first + (own + kStride - first % kStride) % kStride;
    // Idle, a token is prepared all the same.
    brings_ = (last_ < 0 ? 0 : last_ % kStride) == own;
  }

  // Keys of earlier steps alone: [oldest_, newest_).
  GPU_DEVICE void LookUp(int unit, int which) {
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      const int key = unit * Shape::kStepKeys + r * Tile::kRun;
      if (key + Tile::kRun > oldest_ && key < newest_) {
        block_[which][r] = walk_.table[walk_.Index(key)];
      }
    }
  }
  GPU_DEVICE void Fetch(int unit, int stage, int which) {
    if (unit <= last_) {
#pragma unroll
      for (int r = 0; r < kRuns; ++r) {
        const int key = unit * Shape::kStepKeys + r * Tile::kRun;
        const bool visible = key + Tile::kRun > oldest_ && key < newest_;
        gpu_kernels::CopyRun<Stored, kHeadDim, 32>(
            s_.stage[wave_][stage] + r * Tile::kRun * Tile::kPitch,
            visible ? walk_.Entry(key, block_[which][r]) : walk_.base, walk_.token_stride,
            visible ? oldest_ - key : 0, visible ? newest_ - key : 0, true);
      }
    }
    gpu::CommitCopies();
  }

  // Where this lane's values come from, and where they are kept: nullptr for nowhere.
  GPU_DEVICE void FindPlaces() {
    const ashlar_qkv_prepare& a = p_.prepare;
    const int q_heads = static_cast<int>(a.q_out.shape[1]);
    is_q_ = row_ < rows_.rows;
    const bool is_new = brings_ && (row_ == kKeyRow || row_ == kValueRow);
    int head = kv_head_ * rows_.rows + row_;
    if (!is_q_) head = q_heads + kv_head_ + (row_ == kValueRow ? a.kv.kv_heads : 0);
    if (is_q_ || is_new) from_ = static_cast<const char*>(a.qkv.data) + head * kHeadDim * 2;
    if (is_q_ && brings_) to_ = static_cast<char*>(a.q_out.data) + head * kHeadDim * 2;
    const int64_t slot = a.slots[0];
    if (is_new && slot >= 0 && slot < a.kv.blocks * a.kv.block_tokens) {
      const int64_t block = slot / a.kv.block_tokens;
      to_ = static_cast<char*>(a.kv.base) + block * a.kv.block_stride +
            kv_head_ * a.kv.head_stride + (slot - block * a.kv.block_tokens) * a.kv.token_stride +
            (row_ == kValueRow ? kHeadDim * kBytes : 0);
    }
    asm volatile("" : "+l"(from_), "+l"(to_));  // here: what follows the wait is short
  }

  GPU_DEVICE void Prepare() {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      own_[c] = {};
      if (from_ != nullptr) {
        own_[c] = *reinterpret_cast<const gpu::Vector*>(from_ + 2 * Row::Column(c));
      }
    }
    const ashlar_qkv_prepare& a = p_.prepare;
    Row row;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) gpu_kernels::UnpackFloats(ASHLAR_BF16, own_[c], row.x[c]);
    if (a.q_norm.data != nullptr || a.k_norm.data != nullptr) row.Norm(NormWeights(), a.eps);
    if (a.inv_freq != nullptr && row_ != kValueRow) row.Rotate(s_.tables, a.rope_style);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      for (int i = 0; i < 4; ++i) {
        own_[c].word[i] = gpu_kernels::Pack<BF16>(row.x[c][2 * i], row.x[c][2 * i + 1]);
      }
      query_[c] = {};
      if (is_q_) query_[c].vector[0] = own_[c];
      if (!Shape::kF8) continue;
      gpu_kernels::Convert<T>(ASHLAR_BF16, query_[c].vector[0]);
      for (int i = 0; i < 2; ++i) {
        const uint32_t low = gpu_kernels::PackF8(row.x[c][4 * i], row.x[c][4 * i + 1]);
        const uint32_t high = gpu_kernels::PackF8(row.x[c][4 * i + 2], row.x[c][4 * i + 3]);
        if (!is_q_) own_[c].word[i] = low | high << 16;
      }
    }
  }

  // Of this lane's row; nullptr where it has none.
  GPU_DEVICE const float* NormWeights() const {
    if (is_q_) return p_.prepare.q_norm.data != nullptr ? s_.tables.q_norm : nullptr;
    const bool has = row_ != kValueRow && p_.prepare.k_norm.data != nullptr;
    return has ? s_.tables.k_norm : nullptr;
  }

  // Eight values as the cache stores them.
  GPU_DEVICE static void PutEight(char* to, const gpu::Vector& values) {
    if constexpr (Shape::kF8) {
      *reinterpret_cast<uint64_t*>(to) = uint64_t{values.word[1]} << 32 | values.word[0];
    } else {
      *reinterpret_cast<gpu::Vector*>(to) = values;
    }
  }
  // The new entry into the stage that ends with its key.
  GPU_DEVICE void PutNew(char* stage) const {
    if (row_ == kKeyRow || row_ == kValueRow) {
      const int key = newest_ % Shape::kStepKeys;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        const int byte = (row_ == kValueRow ? kHeadDim * kBytes : 0) + Row::Column(c) * kBytes;
        PutEight(stage + Tile::At(key, byte / 16) + byte % 16, own_[c]);
      }
    }
    gpu::SyncWave<32>();
  }
  // What was prepared, where it belongs.
  GPU_DEVICE void Keep() const {
    if (to_ == nullptr) return;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (is_q_) {
        *reinterpret_cast<gpu::Vector*>(to_ + 2 * Row::Column(c)) = own_[c];
      } else {
        PutEight(to_ + kBytes * Row::Column(c), own_[c]);
      }
    }
  }

  GPU_DEVICE void Attend(const char* stage) {
    const int key = unit_ * Shape::kStepKeys;
    math_.Score(stage, [&](int, int c) { return query_[c]; });
    if (unit_ == last_ || key < oldest_) math_.Mask(key, p_.attention.args.window);
    math_.Weigh(p_.attention.scale_log2);
    math_.AddValues(stage);
  }

  // The waves' sums become the block's, whose columns go to the blocks that add them up.
  GPU_DEVICE void Share() {
    math_.End();
    gpu::SyncWave<32>();
    OwnSums::Put(math_, rows_.rows, p_.attention.scale_log2, WaveRoom(wave_), s_.totals[wave_]);
    gpu::SyncBlock();
    constexpr int kFours = kHeadDim / 4;
#pragma unroll 1
    for (int i = thread_; i < rows_.rows * kFours; i += Shape::kThreads) {
      const int row = i / kFours, column = i % kFours * 4;
      gpu_kernels::Sums of_waves[Shape::kWaves];
#pragma unroll
      for (int w = 0; w < Shape::kWaves; ++w) {
        of_waves[w] = OwnSums::Get(WaveRoom(w), s_.totals[w], row, column);
      }
      const gpu_kernels::Sums sums = gpu_kernels::AddUp(of_waves, Shape::kWaves);
      const int to = column / Shape::kColumns, at = column % Shape::kColumns;
      StoreAt(&s_.values[rank_][row][at], &s_.arrived, to, sums.value);
      if (at == 0) StoreAt(s_.tops[rank_][row], &s_.arrived, to, sums.top, sums.weight);
    }
  }
  GPU_DEVICE float* WaveRoom(int wave) const { return reinterpret_cast<float*>(s_.stage[wave][0]); }

  GPU_DEVICE void AddUp() {
    Wait(&s_.arrived, 0);
    constexpr int kFours = Shape::kColumns / 4;
    if (last_ < 0) return;
#pragma unroll 1
    for (int i = thread_; i < rows_.rows * kFours; i += Shape::kThreads) {
      const int row = i / kFours, column = i % kFours * 4;
      gpu_kernels::Sums of_blocks[kRanks];
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        of_blocks[r] = {s_.tops[r][row][0], s_.tops[r][row][1],
                        *reinterpret_cast<const gpu::Four*>(&s_.values[r][row][column])};
      }
      Store(row, rank_ * Shape::kColumns + column, gpu_kernels::AddUp(of_blocks, kRanks));
    }
  }
  GPU_DEVICE void Store(int row, int column, const gpu_kernels::Sums& sums) const {
    const float share = gpu::Reciprocal(sums.weight);
    const float* value = sums.value.value;
    char* head = HeadOf(p_.attention, p_.attention.args.out, rows_, kv_head_, row);
    *reinterpret_cast<uint64_t*>(head + 2 * column) =
        uint64_t{gpu_kernels::Pack<BF16>(value[2] * share, value[3] * share)} << 32 |
        gpu_kernels::Pack<BF16>(value[0] * share, value[1] * share);
  }

  const StepParams& p_;
  Shared& s_;
  const int thread_ = gpu::ThreadX(), wave_ = thread_ / 32, lane_ = thread_ % 32, row_ = lane_ / 4;
  const int rank_ = ClusterRank(), kv_head_ = gpu::BlockX() / kRanks;
  const gpu_kernels::CacheWalk walk_ = WalkOf(p_.attention, 0, kv_head_);
  gpu_kernels::RowTile rows_;
  int oldest_ = 0, newest_ = 0;            // keys that are seen: the newest is the new token's
  int unit_ = 0, last_ = 0;                // of kStepKeys keys: this wave's next, the last of all
  int block_[Shape::kStages][kRuns] = {};  // of the cache, of keys that are fetched next
  bool brings_ = false;                    // this wave has the new key
  bool is_q_ = false;                      // this lane's row is a query head
  const char* from_ = nullptr;
  char* to_ = nullptr;
  gpu::Vector own_[kChunks] = {};  // of this lane's row, as it is kept
  gpu_kernels::Operand<32> query_[kChunks];
  gpu_kernels::AttentionMath<Stored, kHeadDim, 32, 1, kRuns, Shape::kF8> math_;
};

#endif

template <class Stored, int kHeadDim, int kRanks>
GPU_KERNEL void GPU_BOUNDS(StepShape<Stored, kHeadDim, kRanks>::kThreads, 2)
    StepKernel(GPU_GRID_CONSTANT const StepParams params) {
#if defined(ASHLAR_HOPPER)
  using Shared = typename StepShape<Stored, kHeadDim, kRanks>::Shared;
  auto& shared = *reinterpret_cast<Shared*>(gpu::SharedMemory());
  StepBlock<Stored, kHeadDim, kRanks>(params, shared).Run();
#endif
}

}  // namespace ashlar::hopper
