// One sequence's next token and one of its KV heads, by a cluster of blocks: its heads are prepared
// (norm, rotary embedding, cache) where they are needed, and attend. The cluster's waves divide the
// keys in turn, bring those of earlier steps ahead of what the token's own wait for, and add up
// through each other's shared memory. Bound by latency, of long contexts by bytes.
//
// A row is a query head of the KV head's group. Lane l of a wave has a quarter of row l / 4, as the
// products take it: pairs of a rotary embedding are the lane's own. Rows past the group are, on the
// wave whose keys end with the new one, its K and its V.
#pragma once

#include "gpu/attention_sums.h"
#include "hopper_cluster.h"
#include "hopper_step_row.h"
#include "hopper_words.h"

namespace ashlar::hopper {

inline constexpr int kMostStepGroup = 6;  // query heads of a KV head: two rows are left
inline constexpr int kKeyRow = 6, kValueRow = 7;

// kRankCount blocks are a cluster. It attends for one pair of a token and a KV head in a launch
// (kOnePair) and counts copies by groups; or for pairs in turn among a kernel's other work, to
// which it leaves the groups, and qkv and out are words (hopper_words.h).
template <class Stored, int kHeadDim, int kRankCount, int kWaveCount = 6, int kStageCount = 2,
          bool kOnePair = true>
struct StepShape {
  using Element = Stored;
  using Tile = gpu_kernels::CacheTile<Stored, kHeadDim>;
  static constexpr bool kOne = kOnePair, kF8 = std::is_same_v<Stored, gpu_kernels::F8>;
  using OwnSums = gpu_kernels::WaveSums<Stored, kHeadDim, 32, kF8>;
  static constexpr int kDim = kHeadDim, kRanks = kRankCount, kStages = kStageCount;
  static constexpr int kWaves = kWaveCount, kThreads = 32 * kWaves;
  static constexpr int kRooms = kOne ? 1 : 2;           // for blocks' sums, in turn
  static constexpr int kValueBytes = kOne ? 2 : 4;      // in rows of qkv and of out
  static constexpr int kStepKeys = OwnSums::kStepKeys;  // of one wave at a time
  static constexpr int kStageBytes = kStepKeys * Tile::kPitch;
  static constexpr int kColumns = kHeadDim / kRanks;  // that a block adds up
  static_assert(kColumns % 4 == 0 && kStages <= 2);

  struct Shared {
    char stage[kWaves][kStages][kStageBytes];
    float totals[kWaves][OwnSums::kTotals];
    // Of each block's keys, see gpu_kernels::Sums: weighted sums; the top and the weights' sum.
    float values[kRooms][kRanks][kMostStepGroup][kColumns];
    float tops[kRooms][kRanks][kMostStepGroup][2];
    StepTables<kHeadDim> tables;
    uint64_t arrived[kRooms];                       // Barriers: sums are there
    uint64_t brought[kOne ? 1 : kWaves * kStages];  // and keys, unless kOne
  };
};

// How often a thread has waited for the barriers of Shared.
struct StepTurns {
  uint32_t sums = 0;
  uint32_t stages = 0;  // a bit for each stage of its wave: the parity of the phase
};

#if defined(ASHLAR_HOPPER)

// Of Attend: nothing is kept elsewhere.
struct NoSecond {
  GPU_DEVICE static constexpr bool HoldsKeys() { return false; }
  GPU_DEVICE static char* AwaitKeys() { return nullptr; }
  GPU_DEVICE static void UseKeys() {}
};

// What a thread does for a pair: FindUnits, FetchFirst, Ready, ExpectSums, Attend, AddUp; of pairs
// in turn FillTables and FindSource stand for Ready. Of `call` only that is read which pairs have
// in common.
template <class StepShape>
class StepBlock {
 public:
  using Shape = StepShape;
  using Shared = typename Shape::Shared;
  static constexpr int kHeadDim = Shape::kDim, kRanks = Shape::kRanks;

  GPU_DEVICE StepBlock(const ashlar_qkv_prepare& call, const StepPair& pair,
                       const gpu_kernels::CacheWalk& walk, Shared& shared)
      : call_(&call), pair_(pair), walk_(walk), s_(&shared) {}

  // By one thread, once in a launch.
  GPU_DEVICE static void InitBarriers(Shared& shared) {
    for (Barrier& barrier : shared.arrived) InitBarrier(&barrier, 1);
    if constexpr (!Shape::kOne) {
      for (Barrier& barrier : shared.brought) InitBarrier(&barrier, 32);
    }
    FenceBarriers();
  }

  // `context`: the token's, from which it attends to all keys before.
  GPU_DEVICE void FindUnits(int context) {
    newest_ = context - 1;
    const int visible = newest_ - pair_.window + 1;
    oldest_ = pair_.window > 0 && visible > 0 ? visible : 0;
    last_ = newest_ < 0 ? -1 : newest_ / Shape::kStepKeys;
    const int own = rank_ + kRanks * wave_, first = oldest_ / Shape::kStepKeys;
    unit_ = first + (own + kStride - first % kStride) % kStride;
    // Idle, a token is prepared all the same.
    brings_ = (last_ < 0 ? 0 : last_ % kStride) == own;
  }
  GPU_DEVICE bool IsIdle() const { return last_ < 0; }

  // Sets off the wave's first keys of earlier steps.
  GPU_DEVICE void FetchFirst() {
#pragma unroll
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      LookUp(unit_ + stage * kStride, block_[stage]);
    }
#pragma unroll
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      Fetch(unit_ + stage * kStride, stage, stage);
    }
  }

  // What else does not depend on qkv. Between FillTables and Attend there is a SyncBlock.
  GPU_DEVICE void FillTables() const {
    s_->tables.Put(StepTables<kHeadDim>::Load(pair_), call_->rope_scale);
  }
  GPU_DEVICE void Ready() {
    const auto entry = StepTables<kHeadDim>::Load(pair_);  // on its way together with the slot
    FindSource();
    FindTarget();
    s_->tables.Put(entry, call_->rope_scale);
  }

  // Where this lane's values come from: nullptr for nowhere.
  GPU_DEVICE void FindSource() {
    is_q_ = row_ < pair_.group;
    if (is_q_ || IsNew()) from_ = pair_.qkv + Head() * kHeadDim * kValueBytes;
    asm volatile("" : "+l"(from_));  // here: what follows the wait is short
  }

  // By one thread: how much comes from the blocks of the cluster.
  GPU_DEVICE void ExpectSums(const StepTurns& turns) {
    ArriveExpecting(&s_->arrived[Room(turns)], kRanks * pair_.group * (Shape::kColumns + 2) * 4);
  }

  // Whether the wave has a second unit, before Attend: where there is one stage alone, elsewhere is
  // room for it (Second).
  GPU_DEVICE bool HasSecond() const { return Shape::kStages == 1 && unit_ + kStride <= last_; }
  using Blocks = int[Shape::kStepKeys / Shape::Tile::kRun];
  // Of that unit, the blocks that hold its keys; and, in copies of the thread's next group, those.
  GPU_DEVICE void LookUpSecond(Blocks& blocks) const { LookUp(unit_ + kStride, blocks); }
  GPU_DEVICE void FetchSecond(char* to, const Blocks& blocks) const {
    CopyUnit(unit_ + kStride, to, blocks);
  }

  // Once the tables are there, and qkv is or, as words, comes. Keeps K and V, and shares the sums
  // over the block's keys; one of several pairs whose token is idle has none. Of a wave that
  // HasSecond that unit, where `holds`, is where second.AwaitKeys() says, until second.UseKeys().
  template <class Second>
  GPU_DEVICE void Attend(float scale, StepTurns& turns, Second& second, bool holds) {
    Work w;
    bool elsewhere = holds && HasSecond();  // the second unit, until it is used
    if (unit_ <= last_ || brings_) Prepare(w);
    w.math.Begin(pair_.group, [&](int) { return newest_; });
    int ahead = unit_ + (elsewhere ? 2 : Shape::kStages) * kStride;  // what the stage takes next
    bool here = true;                                                // this unit is in its stage
#pragma unroll 1
    for (int stage = 0; unit_ <= last_; unit_ += kStride) {
      char* keys = s_->stage[wave_][stage];
      if (here) {
        Await(stage, turns);
        LookUp(ahead, block_[0]);
      } else {
        keys = second.AwaitKeys();
      }
      if (unit_ == last_) PutNew(w, keys);
      AttendUnit(w, keys, scale);
      gpu::SyncWave<32>();
      if (here) {
        Fetch(ahead, stage, 0);
        ahead += kStride;
        stage ^= Shape::kStages - 1;
      } else {
        second.UseKeys();
      }
      here = !elsewhere;
      elsewhere = false;
    }
    if constexpr (Shape::kOne) {
      if (brings_) Keep(w);
    } else if (IsIdle()) {
      if (brings_) KeepLate(w), StoreZeros();
      return;
    }
    Share(w, scale, Room(turns));
    if (!Shape::kOne && brings_) KeepLate(w);
  }

  // What all blocks have shared, as the answer.
  GPU_DEVICE void AddUp(StepTurns& turns) const {
    const int room = Room(turns);
    Wait(&s_->arrived[room], turns.sums++ / Shape::kRooms % 2);
    constexpr int kFours = Shape::kColumns / 4;
    if (last_ < 0) return;
#pragma unroll 1
    for (int i = thread_; i < pair_.group * kFours; i += Shape::kThreads) {
      const int row = i / kFours, column = i % kFours * 4;
      gpu_kernels::Sums of_blocks[kRanks];
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        of_blocks[r] = {s_->tops[room][r][row][0], s_->tops[room][r][row][1],
                        *reinterpret_cast<const gpu::Four*>(&s_->values[room][r][row][column])};
      }
      Store(row, rank_ * Shape::kColumns + column, gpu_kernels::AddUp(of_blocks, kRanks));
    }
  }

 private:
  using Stored = typename Shape::Element;
  using Tile = typename Shape::Tile;
  using OwnSums = typename Shape::OwnSums;
  using T = gpu_kernels::Multiplied<Stored>;
  using BF16 = gpu_kernels::BF16;
  using Row = StepRow<kHeadDim>;
  static constexpr int kRuns = Shape::kStepKeys / Tile::kRun, kChunks = Row::kChunks;
  static constexpr int kStride = kRanks * Shape::kWaves;  // units from a wave's to its next
  static constexpr int kBytes = sizeof(Stored), kValueBytes = Shape::kValueBytes;

  // Of this lane's row, and of its wave.
  struct Work {
    gpu::Vector own[kChunks] = {};  // as it is kept
    gpu_kernels::Operand<32> query[kChunks];
    gpu_kernels::AttentionMath<Stored, kHeadDim, 32, 1, kRuns, Shape::kF8> math;
  };

  // Keys of earlier steps alone: [oldest_, newest_).
  GPU_DEVICE void LookUp(int unit, Blocks& blocks) const {
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      const int key = unit * Shape::kStepKeys + r * Tile::kRun;
      if (key + Tile::kRun > oldest_ && key < newest_) blocks[r] = walk_.table[walk_.Index(key)];
    }
  }
  GPU_DEVICE void CopyUnit(int unit, char* to, const Blocks& blocks) const {
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      const int key = unit * Shape::kStepKeys + r * Tile::kRun;
      const bool visible = key + Tile::kRun > oldest_ && key < newest_;
      gpu_kernels::CopyRun<Stored, kHeadDim, 32>(
          to + r * Tile::kRun * Tile::kPitch, visible ? walk_.Entry(key, blocks[r]) : walk_.base,
          walk_.token_stride, visible ? oldest_ - key : 0, visible ? newest_ - key : 0, true);
    }
  }
  GPU_DEVICE void Fetch(int unit, int stage, int which) {
    if (unit <= last_) {
      CopyUnit(unit, s_->stage[wave_][stage], block_[which]);
      if constexpr (!Shape::kOne) ArriveWithCopies(Brought(stage));
    }
    if constexpr (Shape::kOne) gpu::CommitCopies();
  }
  GPU_DEVICE void Await(int stage, StepTurns& turns) const {
    if constexpr (Shape::kOne) {
      gpu::WaitCopies<Shape::kStages - 1>();
    } else {
      Wait(Brought(stage), turns.stages >> stage & 1);
      turns.stages ^= 1u << stage;
    }
    gpu::SyncWave<32>();
  }
  GPU_DEVICE Barrier* Brought(int stage) const {
    return &s_->brought[wave_ * Shape::kStages + stage];
  }

  GPU_DEVICE bool IsNew() const { return brings_ && (row_ == kKeyRow || row_ == kValueRow); }
  // Of qkv, or of q_out, this lane's row.
  GPU_DEVICE int Head() const {
    const int q_heads = static_cast<int>(call_->q_out.shape[1]);
    if (is_q_) return pair_.kv_head * pair_.group + row_;
    return q_heads + pair_.kv_head + (row_ == kValueRow ? call_->kv.kv_heads : 0);
  }
  // And where they are kept.
  GPU_DEVICE void FindTarget() {
    const ashlar_kv_view& kv = call_->kv;
    if (Shape::kOne && is_q_ && brings_) to_ = pair_.q_out + Head() * kHeadDim * 2;
    const int64_t slot = *pair_.slot;
    if (IsNew() && slot >= 0 && slot < kv.blocks * kv.block_tokens) {
      const int64_t block = slot / kv.block_tokens;
      to_ = pair_.kv_base + block * kv.block_stride + pair_.kv_head * kv.head_stride +
            (slot - block * kv.block_tokens) * kv.token_stride +
            (row_ == kValueRow ? kHeadDim * kBytes : 0);
    }
    asm volatile("" : "+l"(to_));
  }

  // Of one pair qkv is there; words are read until all lanes have theirs.
  GPU_DEVICE void ReadOwn(Work& w) const {
    bool there;
    do {
      there = true;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        w.own[c] = {};
        if (from_ == nullptr) continue;
        const char* from = from_ + kValueBytes * Row::Column(c);
        if constexpr (Shape::kOne) {
          w.own[c] = *reinterpret_cast<const gpu::Vector*>(from);
        } else {
          there &= ReadEight(reinterpret_cast<const uint64_t*>(from), pair_.round, w.own[c]);
        }
      }
    } while (!Shape::kOne && gpu::Any<32>(!there));
  }

  GPU_DEVICE void Prepare(Work& w) const {
    ReadOwn(w);
    Row row;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) gpu_kernels::UnpackFloats(ASHLAR_BF16, w.own[c], row.x[c]);
    if (pair_.q_norm != nullptr || pair_.k_norm != nullptr) row.Norm(NormWeights(), call_->eps);
    if (pair_.inv_freq != nullptr && row_ != kValueRow) row.Rotate(s_->tables, call_->rope_style);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      for (int i = 0; i < 4; ++i) {
        w.own[c].word[i] = gpu_kernels::Pack<BF16>(row.x[c][2 * i], row.x[c][2 * i + 1]);
      }
      w.query[c] = {};
      if (is_q_) w.query[c].vector[0] = w.own[c];
      if (!Shape::kF8) continue;
      gpu_kernels::Convert<T>(ASHLAR_BF16, w.query[c].vector[0]);
      for (int i = 0; i < 2; ++i) {
        const uint32_t low = gpu_kernels::PackF8(row.x[c][4 * i], row.x[c][4 * i + 1]);
        const uint32_t high = gpu_kernels::PackF8(row.x[c][4 * i + 2], row.x[c][4 * i + 3]);
        if (!is_q_) w.own[c].word[i] = low | high << 16;
      }
    }
  }

  // Of this lane's row; nullptr where it has none.
  GPU_DEVICE const float* NormWeights() const {
    if (is_q_) return pair_.q_norm != nullptr ? s_->tables.q_norm : nullptr;
    return row_ != kValueRow && pair_.k_norm != nullptr ? s_->tables.k_norm : nullptr;
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
  GPU_DEVICE void PutNew(const Work& w, char* stage) const {
    if (row_ == kKeyRow || row_ == kValueRow) {
      const int key = newest_ % Shape::kStepKeys;
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        const int byte = (row_ == kValueRow ? kHeadDim * kBytes : 0) + Row::Column(c) * kBytes;
        PutEight(stage + Tile::At(key, byte / 16) + byte % 16, w.own[c]);
      }
    }
    gpu::SyncWave<32>();
  }
  // Where others wait for sums, not for the entry.
  GPU_DEVICE void KeepLate(const Work& w) {
    FindTarget();
    Keep(w);
  }
  // What was prepared, where it belongs.
  GPU_DEVICE void Keep(const Work& w) const {
    if (to_ == nullptr) return;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (is_q_) {
        *reinterpret_cast<gpu::Vector*>(to_ + 2 * Row::Column(c)) = w.own[c];
      } else {
        PutEight(to_ + kBytes * Row::Column(c), w.own[c]);
      }
    }
  }

  GPU_DEVICE void AttendUnit(Work& w, const char* stage, float scale) const {
    const int key = unit_ * Shape::kStepKeys;
    w.math.Score(stage, [&](int, int c) { return w.query[c]; });
    if (unit_ == last_ || key < oldest_) w.math.Mask(key, pair_.window);
    w.math.Weigh(scale);
    w.math.AddValues(stage);
  }

  // The waves' sums become the block's, whose columns go to the blocks that add them up.
  GPU_DEVICE void Share(Work& w, float scale, int room) const {
    w.math.End();
    gpu::SyncWave<32>();
    OwnSums::Put(w.math, pair_.group, scale, WaveRoom(wave_), s_->totals[wave_]);
    gpu::SyncBlock();
    constexpr int kFours = kHeadDim / 4;
#pragma unroll 1
    for (int i = thread_; i < pair_.group * kFours; i += Shape::kThreads) {
      const int row = i / kFours, column = i % kFours * 4;
      gpu_kernels::Sums of_waves[Shape::kWaves];
#pragma unroll
      for (int v = 0; v < Shape::kWaves; ++v) {
        of_waves[v] = OwnSums::Get(WaveRoom(v), s_->totals[v], row, column);
      }
      const gpu_kernels::Sums sums = gpu_kernels::AddUp(of_waves, Shape::kWaves);
      const int to = column / Shape::kColumns, at = column % Shape::kColumns;
      Barrier* const arrived = &s_->arrived[room];
      StoreAt(&s_->values[room][rank_][row][at], arrived, to, sums.value);
      if (at == 0) StoreAt(s_->tops[room][rank_][row], arrived, to, sums.top, sums.weight);
    }
  }
  GPU_DEVICE float* WaveRoom(int wave) const {
    return reinterpret_cast<float*>(s_->stage[wave][0]);
  }
  GPU_DEVICE static int Room(const StepTurns& turns) {
    return static_cast<int>(turns.sums % Shape::kRooms);
  }

  GPU_DEVICE void Store(int row, int column, const gpu_kernels::Sums& sums) const {
    const float share = gpu::Reciprocal(sums.weight);
    const float* value = sums.value.value;
    StoreFour(row, column, gpu_kernels::Pack<BF16>(value[0] * share, value[1] * share),
              gpu_kernels::Pack<BF16>(value[2] * share, value[3] * share));
  }
  GPU_DEVICE void StoreFour(int row, int column, uint32_t low, uint32_t high) const {
    char* head = pair_.out + (pair_.kv_head * pair_.group + row) * kHeadDim * kValueBytes;
    if constexpr (Shape::kOne) {
      *reinterpret_cast<uint64_t*>(head + 2 * column) = uint64_t{high} << 32 | low;
    } else {
      auto* const words = reinterpret_cast<uint64_t*>(head);
      WriteWord(words + WordOf(column), low, pair_.round);
      WriteWord(words + WordOf(column + 2), high, pair_.round);
    }
  }
  // Of an idle token, which others wait for all the same. By the wave that has read its qkv.
  GPU_DEVICE void StoreZeros() const {
    for (int i = thread_ % 32; i < pair_.group * kHeadDim / 4; i += 32) {
      StoreFour(i / (kHeadDim / 4), i % (kHeadDim / 4) * 4, 0, 0);
    }
  }

  const ashlar_qkv_prepare* call_;
  StepPair pair_;
  gpu_kernels::CacheWalk walk_;
  Shared* s_;
  int thread_ = gpu::ThreadX(), wave_ = thread_ / 32, row_ = thread_ % 32 / 4;
  int rank_ = ClusterRank();
  int oldest_ = 0, newest_ = 0;        // keys that are seen: the newest is the new token's
  int unit_ = 0, last_ = 0;            // of kStepKeys keys: this wave's next, the last of all
  Blocks block_[Shape::kStages] = {};  // of the cache, of keys that are fetched next
  bool brings_ = false;                // this wave has the new key
  bool is_q_ = false;                  // this lane's row is a query head
  const char* from_ = nullptr;
  char* to_ = nullptr;
};

#endif

}  // namespace ashlar::hopper
