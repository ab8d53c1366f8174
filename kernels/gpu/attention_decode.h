// Causal attention of sequences with few new tokens: the query heads that share a KV head are the
// rows of one tile, the waves of a block divide the keys, and blocks divide the line of all keys
// evenly, without cutting a pair where a few blocks less can. Each wave has a ring of stages of its
// own in shared memory, so that waves meet only where a pair of sequence and KV head ends; it is
// filled before the kernels ahead have ended, with keys that none of them writes. Of the blocks
// that share a pair, the last to arrive adds up. Bound by bytes.
#pragma once

#include "attention_line.h"
#include "attention_sums.h"

namespace ashlar::gpu_kernels {

// With kStrip sequences have the rows of a strip at most.
template <class Stored, int kHeadDim, bool kStrip>
struct DecodeShape {
  using Tile = CacheTile<Stored, kHeadDim>;
  static constexpr bool kWide = kHeadDim > 128;  // the rows' operands stay in shared memory
  static constexpr int kBlocks = kStrip && !kWide ? 3 : 2;  // on a multiprocessor at a time
  static constexpr int kWaves = kWide ? 2 : 4;
  static constexpr int kStepKeys = Tile::kHalves * kHalf;  // of one wave at a time
  static constexpr int kUnitKeys = kWaves * kStepKeys;
  static constexpr int kStageBytes = kStepKeys * Tile::kPitch;
  static constexpr int kQueryBytes = kWide ? kWaves * kTile * kHeadDim * 2 : 0;
#if defined(ASHLAR_GPU_HIP)
  static constexpr int kStages = 1;  // a copy blocks its thread
#else
  static constexpr int kRoom = kBlocks == 3 ? 72 << 10 : 96 << 10;
  static constexpr int kFitting = (kRoom - kQueryBytes) / (kWaves * kStageBytes);
  static constexpr int kStages = kFitting > 6 ? 6 : kFitting;
#endif
  static constexpr int kTotals = kWaves * kTile * 2;  // floats: those of WaveSums
  static constexpr size_t kSharedBytes =
      size_t{kWaves} * kStages * kStageBytes + kQueryBytes + kTotals * sizeof(float) + 16;
  static constexpr int kPartFloats = kTile * (kHeadDim + 2);  // sums, then largest and weight
};

template <class Stored, int kHeadDim, int kWave, bool kStrip>
struct DecodeBlock {
  using Shape = DecodeShape<Stored, kHeadDim, kStrip>;
  using Tile = CacheTile<Stored, kHeadDim>;
  using T = Multiplied<Stored>;
  using Layout = MatrixLayout<kWave>;
  using Queries = QueryRoom<T, kHeadDim, kWave>;
  using Line = AttentionLine<Shape::kUnitKeys, kWave>;
  using OwnSums = WaveSums<Stored, kHeadDim, kWave, kStrip>;
  static_assert(OwnSums::kStepKeys == Shape::kStepKeys);
  static constexpr int kThreads = Shape::kWaves * kWave;
  static constexpr int kRuns = Shape::kStepKeys / Tile::kRun;
  static constexpr int kAhead = Shape::kStages - 1;  // stages that fill while one is used

  const AttentionParams& p;
  const LineParts parts;
  const int begin, end;  // this block's units of the line
  const int thread = gpu::ThreadX(), wave = thread / kWave, lane = thread % kWave;
  char* const ring = gpu::SharedMemory() + wave * Shape::kStages * Shape::kStageBytes;
  char* const queries = gpu::SharedMemory() + Shape::kWaves * Shape::kStages * Shape::kStageBytes;
  char* const own_queries = queries + wave * Queries::kBytes;
  float* const totals = reinterpret_cast<float*>(queries + Shape::kQueryBytes);
  int* const last = reinterpret_cast<int*>(totals + Shape::kTotals);
  AttentionMath<Stored, kHeadDim, kWave, 1, kRuns, kStrip> math;
  Operand<kWave> query[Shape::kWide ? 1 : Tile::kChunks];

  LinePlace ahead;   // whose keys are fetched next
  int block[kRuns];  // of those keys
  int ahead_stage = 0;

  GPU_DEVICE DecodeBlock(const AttentionParams& params, const LineParts& line)
      : p(params),
        parts(line),
        begin(line.Begin(gpu::BlockX())),
        end(line.Begin(gpu::BlockX() + 1)) {}

  // This wave's first key of a unit.
  GPU_DEVICE int KeyOf(const LinePlace& place) {
    return Line::Begin(place.oldest) + place.unit * Shape::kUnitKeys + wave * Shape::kStepKeys;
  }
  GPU_DEVICE static bool Visible(const LinePlace& place, int key, int keys) {
    return key + keys > place.oldest && key < place.rows.context;
  }

  // Whether this wave's keys of a unit are among those that this step brings.
  GPU_DEVICE bool HasNewKeys(const LinePlace& place) {
    return KeyOf(place) + Shape::kStepKeys > place.rows.FirstPosition();
  }

  // Blocks are looked up one step before their keys are fetched: nothing waits for the table.
  GPU_DEVICE void LookUp() {
    const CacheWalk walk = WalkOf(p, ahead.rows.sequence, ahead.head);
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      const int key = KeyOf(ahead) + r * Tile::kRun;
      if (Visible(ahead, key, Tile::kRun)) block[r] = walk.table[walk.Index(key)];
    }
  }
  GPU_DEVICE void Fetch(int unit) {
    const CacheWalk walk = WalkOf(p, ahead.rows.sequence, ahead.head);
    char* stage = ring + ahead_stage * Shape::kStageBytes;
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      const int key = KeyOf(ahead) + r * Tile::kRun;
      const bool visible = Visible(ahead, key, Tile::kRun);
      const char* from = visible ? walk.Entry(key, block[r]) : walk.base;
      // Kept, keys would drive out queries and block tables, which then come behind other keys.
      // Wider heads have no registers left for it; of 64, ptxas 13.0 makes
      // instructions that are none.
      CopyRun<Stored, kHeadDim, kWave, kHeadDim == 128>(
          stage + r * Tile::kRun * Tile::kPitch, from, walk.token_stride,
          visible ? ahead.oldest - key : 0, visible ? ahead.rows.context - key : 0, p.aligned);
    }
    ahead_stage = ahead_stage + 1 == Shape::kStages ? 0 : ahead_stage + 1;
    if (unit + 1 < end) {
      Line{p}.Advance(ahead);
      LookUp();
    }
  }

  // By way of `room`, a stage that nothing fills yet.
  GPU_DEVICE void LoadQueries(const LinePlace& now, char* room) {
    if constexpr (Shape::kWide) {
      Queries::Put(p, now.rows, now.head, 0, own_queries);
    } else {
      static_assert(Queries::kBytes <= Shape::kStageBytes);
      Queries::Put(p, now.rows, now.head, 0, room);
      gpu::SyncWave<kWave>();  // or the compiler would keep them as they were loaded
#pragma unroll
      for (int c = 0; c < Tile::kChunks; ++c) query[c] = Queries::Get(room, c);
    }
  }

  GPU_DEVICE void Attend(const LinePlace& now, const char* stage) {
    const int key = KeyOf(now);
    if (!Visible(now, key, Shape::kStepKeys)) return;
    math.Score(stage, [&](int, int c) {
      if constexpr (Shape::kWide) {
        return Queries::Get(own_queries, c);
      } else {
        return query[c];
      }
    });
    const int last_key = key + Shape::kStepKeys - 1;
    if (last_key > now.rows.FirstPosition() || key < RowTile::Oldest(p, now.rows.LastPosition())) {
      math.Mask(key, p.args.window);
    }
    math.Weigh(p.scale_log2);
    math.AddValues(stage);
  }

  GPU_DEVICE float* Part(int of_block, int which) {
    return p.parts + (of_block * 2 + which) * Shape::kPartFloats;
  }
  GPU_DEVICE void Store(const LinePlace& now, int row, int column, const Sums& sums) {
    StoreFour(p.args.out.dtype, HeadOf(p, p.args.out, now.rows, now.head, row), column, sums.value,
              1 / sums.weight, p.aligned_out);
  }
  GPU_APART static void StoreFour(ashlar_dtype dtype, char* head, int column, gpu::Four value,
                                  float share, bool aligned) {
    for (int i = 0; i < 4; i += 2) {
      StorePair(dtype, head, column + i, value.value[i] * share, value.value[i + 1] * share,
                aligned);
    }
  }

  // Adds up what the waves have of the pair that ends here for this block; `stage`, which no fetch
  // fills, is this wave's room for it. `unit` is the pair's last one in this block.
  GPU_DEVICE void Finish(const LinePlace& now, char* stage, int unit) {
    math.End();
    gpu::SyncWave<kWave>();
    OwnSums::Put(math, now.rows.rows, p.scale_log2, reinterpret_cast<float*>(stage),
                 totals + wave * OwnSums::kTotals);
    gpu::SyncBlock();
    const int pair_begin = unit - now.unit, pair_end = pair_begin + now.units;
    const bool whole = begin <= pair_begin && pair_end <= end;
    float* part = Part(gpu::BlockX(), begin >= pair_begin ? 0 : 1);
    constexpr int kFours = kHeadDim / 4;
#pragma unroll 1
    for (int i = thread; i < now.rows.rows * kFours; i += kThreads) {
      const int row = i / kFours, column = i % kFours * 4;
      Sums of_waves[Shape::kWaves];
#pragma unroll
      for (int w = 0; w < Shape::kWaves; ++w) {
        const char* theirs = stage + (w - wave) * Shape::kStages * Shape::kStageBytes;
        of_waves[w] = OwnSums::Get(reinterpret_cast<const float*>(theirs),
                                   totals + w * OwnSums::kTotals, row, column);
      }
      const Sums sums = AddUp(of_waves, Shape::kWaves);
      if (whole) {
        Store(now, row, column, sums);
      } else {
        *reinterpret_cast<gpu::Four*>(part + row * kHeadDim + column) = sums.value;
        if (column == 0) {
          part[kTile * kHeadDim + 2 * row] = sums.top;
          part[kTile * kHeadDim + 2 * row + 1] = sums.weight;
        }
      }
    }
    gpu::SyncBlock();  // the stage may be filled again
    if constexpr (!Shape::kWide) Forget();
    if (!whole) Combine(now, pair_begin, pair_end);
  }

  // Tells the compiler that the next pair needs neither these sums nor these queries: their
  // registers are free for Combine.
  GPU_DEVICE void Forget() {
#pragma unroll
    for (int v = 0; v < Tile::kColumnTiles; ++v) math.sum[0][v] = {};
    for (Operand<kWave>& operand : query) operand = {};
  }

  // The last block of the pair that arrives adds up the parts of all, in their order.
  GPU_DEVICE void Combine(const LinePlace& now, int pair_begin, int pair_end) {
    const int first = parts.Of(pair_begin), after = parts.Of(pair_end - 1) + 1;
    if (thread == 0) {
      uint32_t* arrivals = p.arrivals + now.rows.sequence * p.args.kv.kv_heads + now.head;
      *last = gpu::AddInOrder(arrivals, 1) == static_cast<uint32_t>(after - first - 1);
      if (*last) *arrivals = 0;
    }
    gpu::SyncBlock();
    if (!*last) return;
    // A block's second part is of the pair that it ends in, unless that is its only one.
    const bool shared = parts.Begin(first) < pair_begin;
    constexpr int kFours = kHeadDim / 4;
#pragma unroll 1
    for (int i = thread; i < now.rows.rows * kFours; i += kThreads) {
      const int row = i / kFours, column = i % kFours * 4;
      constexpr int kTogether =
          kStrip || Shape::kWide ? 16
                                 : 24;  // parts whose values are under way at once, and their sum
      Sums sums[kTogether + 1];
#pragma unroll 1
      for (int from = first; from < after; from += kTogether) {
#pragma unroll
        for (int j = 0; j < kTogether; ++j) {
          const int block_of = from + j < after ? from + j : after - 1;
          const float* part = Part(block_of, shared && block_of == first ? 1 : 0);
          const float* total = part + kTile * kHeadDim + 2 * row;
          sums[j] = {from + j < after ? total[0] : -INFINITY, total[1],
                     *reinterpret_cast<const gpu::Four*>(part + row * kHeadDim + column)};
        }
        sums[kTogether] = AddUp(sums, kTogether + 1);
      }
      Store(now, row, column, sums[kTogether]);
    }
  }

  GPU_DEVICE void Run() {
    LinePlace now = Line{p}.Find(begin);
    ahead = now;
    LookUp();
    int stage_number = 0;
    bool fresh = true;  // the pair of `now` begins here for this block
#pragma unroll 1
    for (int unit = begin - kAhead; unit < end; ++unit) {
      const bool fills = unit < begin;  // the ring, for the first time
      if (!fills) {
        if (unit == begin) gpu::WaitForPrevious();
        if (fresh) {
          LoadQueries(now, ring + ahead_stage * Shape::kStageBytes);
          math.Begin(p, now.rows, 0);
        }
        if constexpr (kAhead > 0) gpu::WaitCopies<kAhead - 1>();
        gpu::SyncWave<kWave>();  // shows what was copied, and ends reads of the stage filled next
      }
      if (unit + kAhead < end) {
        // Keys that this step does not bring have been there since an earlier one.
        if (fills && HasNewKeys(ahead)) gpu::WaitForPrevious();
        Fetch(unit + kAhead);
      }
      gpu::CommitCopies();
      if (fills) continue;
      if constexpr (kAhead == 0) {
        gpu::WaitCopies<0>();
        gpu::SyncWave<kWave>();
      }
      char* stage = ring + stage_number * Shape::kStageBytes;
      Attend(now, stage);
      stage_number = stage_number + 1 == Shape::kStages ? 0 : stage_number + 1;
      fresh = now.unit + 1 == now.units || unit + 1 == end;
      if (fresh) Finish(now, stage, unit);
      if (unit + 1 < end) Line{p}.Advance(now);
    }
    gpu::WaitCopies<0>();
  }
};

template <class Stored, int kHeadDim, int kWave, bool kStrip = false>
GPU_KERNEL void GPU_BOUNDS((DecodeShape<Stored, kHeadDim, kStrip>::kWaves * kWave),
                           (DecodeShape<Stored, kHeadDim, kStrip>::kBlocks))
    DecodeKernel(const AttentionParams p) {
  gpu::ReleaseNext();
  if constexpr (gpu::RunsWave<kWave>()) {
    using Shape = DecodeShape<Stored, kHeadDim, kStrip>;
    const LineSize size = AttentionLine<Shape::kUnitKeys, kWave>{p}.Measure();
    const LineParts parts(size.units, WholePairs(size.alike, gpu::GridX()));
    if (gpu::BlockX() >= parts.blocks) return gpu::WaitForPrevious();
    DecodeBlock<Stored, kHeadDim, kWave, kStrip>(p, parts).Run();
  }
}

}  // namespace ashlar::gpu_kernels
