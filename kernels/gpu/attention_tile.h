// Causal attention of many new tokens: a block has a tile of rows, its waves divide them and all
// see the same keys, which pass through shared memory two tiles at a time. Bound by flops.
#pragma once

#include "attention_math.h"

namespace ashlar::gpu_kernels {

template <class Stored, int kHeadDim>
struct TileShape {
  using Tile = CacheTile<Stored, kHeadDim>;
  static constexpr bool kWide = kHeadDim > 128;
  static constexpr int kWaves = 4;
  static constexpr int kRowTiles = kWide ? 1 : 2;  // of a wave
  static constexpr int kWaveRows = kRowTiles * kTile, kRows = kWaves * kWaveRows;
#if defined(ASHLAR_GPU_HIP)
  static constexpr int kStages = 1, kKeys = 32;
#else
  static constexpr int kStages = 2, kKeys = kWide ? 32 : 64;
#endif
  // That scores are held of at a time, as far as registers go.
  static constexpr int kStepKeys = kHeadDim > 64 ? 32 : kKeys;
  static constexpr int kStageBytes = kKeys * Tile::kPitch;
  static constexpr int kQueryBytes = kRows * Tile::kChunks * kChunk * 2;
  static constexpr size_t kSharedBytes = size_t{kStages} * kStageBytes + kQueryBytes;
};

template <class Stored, int kHeadDim, int kWave>
struct TileBlock {
  using Shape = TileShape<Stored, kHeadDim>;
  using Tile = CacheTile<Stored, kHeadDim>;
  using T = Multiplied<Stored>;
  using Layout = MatrixLayout<kWave>;
  using Queries = QueryRoom<T, kHeadDim, kWave>;
  static constexpr int kThreads = Shape::kWaves * kWave;
  static constexpr int kRuns = Shape::kKeys / Tile::kRun;

  const AttentionParams& p;
  const RowTile rows;
  const int kv_head = gpu::BlockX(), thread = gpu::ThreadX();
  const int wave = thread / kWave, lane = thread % kWave;
  const int first_row = rows.first + wave * Shape::kWaveRows;  // of this wave
  const CacheWalk walk;
  char* const stages = gpu::SharedMemory();
  char* const queries = stages + Shape::kStages * Shape::kStageBytes +
                        wave * Shape::kRowTiles * Queries::kBytes;  // of this wave
  int oldest = 0, last_key = 0;               // keys that any row sees: [oldest, last_key)
  int block = 0;                              // of the keys that this wave copies next
  int first_position = 0, last_position = 0;  // of this wave's rows
  AttentionMath<Stored, kHeadDim, kWave, Shape::kRowTiles, Shape::kStepKeys / kTile> math;

  GPU_DEVICE TileBlock(const AttentionParams& params, const RowTile& tile)
      : p(params), rows(tile), walk(WalkOf(params, tile.sequence, gpu::BlockX())) {}

  GPU_DEVICE int LastRow(int first, int count) {
    return first + count < rows.rows ? first + count - 1 : rows.rows - 1;
  }

  // A wave copies one run of a tile of keys.
  GPU_DEVICE void LookUp(int key) {
    key += wave * Tile::kRun;
    if (wave < kRuns && key + Tile::kRun > oldest && key < last_key) {
      block = walk.table[walk.Index(key)];
    }
  }
  GPU_DEVICE void Fetch(int key, char* stage) {
    static_assert(kRuns <= Shape::kWaves);
    key += wave * Tile::kRun;
    if (wave < kRuns) {
      const bool visible = key + Tile::kRun > oldest && key < last_key;
      CopyRun<Stored, kHeadDim, kWave>(
          stage + wave * Tile::kRun * Tile::kPitch, visible ? walk.Entry(key, block) : walk.base,
          walk.token_stride, visible ? oldest - key : 0, visible ? last_key - key : 0, p.aligned);
    }
    gpu::CommitCopies();
    LookUp(key - wave * Tile::kRun + Shape::kKeys);
  }

  GPU_DEVICE void Attend(int key, const char* stage) {
    if (first_row >= rows.rows) return;
#pragma unroll 1
    for (int step = 0; step < Shape::kKeys; step += Shape::kStepKeys) {
      const int from = key + step, after = from + Shape::kStepKeys;
      if (from > last_position || after <= RowTile::Oldest(p, first_position)) continue;
      math.Score(stage + step * Tile::kPitch,
                 [&](int r, int c) { return Queries::Get(queries + r * Queries::kBytes, c); });
      if (after - 1 > first_position || from < RowTile::Oldest(p, last_position)) {
        math.Mask(from, p.args.window);
      }
      math.Weigh(p.scale_log2);
      math.AddValues(stage + step * Tile::kPitch);
    }
  }

  GPU_DEVICE void Write() {
    math.End();
#pragma unroll
    for (int r = 0; r < Shape::kRowTiles; ++r) {
#pragma unroll
      for (int slot = 0; slot < Layout::kSlots; ++slot) {
        if (math.position[r][slot] < 0) continue;
        const int row = first_row + r * kTile + Layout::SlotRow(lane, slot);
        char* head = HeadOf(p, p.args.out, rows, kv_head, row);
        const float share = 1 / math.weight[r][slot];
        switch (p.args.out.dtype) {
          case ASHLAR_F32:
            WriteRow<float>(head, math.sum[r], slot, share);
            break;
          case ASHLAR_BF16:
            WriteRow<BF16>(head, math.sum[r], slot, share);
            break;
          default:
            WriteRow<F16>(head, math.sum[r], slot, share);
        }
      }
    }
  }

  template <class Out>
  GPU_DEVICE void WriteRow(char* head, const Accumulator<kWave>* sum, int slot, float share) {
    Out* out = reinterpret_cast<Out*>(head);
#pragma unroll
    for (int v = 0; v < Tile::kColumnTiles; ++v) {
#pragma unroll
      for (int e = 0; e < Layout::kElements; e += 2) {
        if (Layout::Slot(e) != slot) continue;
        const float low = sum[v].element[e] * share, high = sum[v].element[e + 1] * share;
        const int column = math.Column(lane, v, e);
        if constexpr (sizeof(Out) == 2 && !Tile::kF8) {  // neighbours
          if (p.aligned_out) {
            *reinterpret_cast<uint32_t*>(out + column) = Pack<Out>(low, high);
            continue;
          }
        }
        out[column] = Store<Out>(low);
        out[math.Column(lane, v, e + 1)] = Store<Out>(high);
      }
    }
  }

  GPU_DEVICE void Run() {
    oldest = RowTile::Oldest(p, rows.Position(p, rows.first));
    first_position = rows.Position(p, first_row);
    last_position = rows.Position(p, LastRow(first_row, Shape::kWaveRows));
    last_key = rows.Position(p, LastRow(rows.first, Shape::kRows)) + 1;
    // Tiles begin at whole multiples, so that a row's sums do not depend on its neighbours.
    const int begin = oldest / Shape::kKeys * Shape::kKeys;
    LookUp(begin);
    if (Shape::kStages == 2) Fetch(begin, stages);
#pragma unroll 1
    for (int r = 0; r < Shape::kRowTiles; ++r) {
      Queries::Put(p, rows, kv_head, first_row + r * kTile, queries + r * Queries::kBytes);
    }
    math.Begin(p, rows, first_row);
    int stage = 0;
    for (int key = begin; key < last_key; key += Shape::kKeys) {
      if (Shape::kStages == 1) {
        gpu::SyncBlock();  // the stage has been read
        Fetch(key, stages);
      }
      gpu::WaitCopies<0>();
      gpu::SyncBlock();
      const int next = key + Shape::kKeys;
      if (Shape::kStages == 2 && next < last_key) {
        Fetch(next, stages + (stage ^ 1) * Shape::kStageBytes);
      }
      Attend(key, stages + stage * Shape::kStageBytes);
      if (Shape::kStages == 2) stage ^= 1;
    }
    Write();
  }
};

template <class Stored, int kHeadDim, int kWave>
GPU_KERNEL void GPU_BOUNDS((TileShape<Stored, kHeadDim>::kWaves * kWave), 2)
    TileKernel(const AttentionParams p) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  if constexpr (gpu::RunsWave<kWave>()) {
    // Later tiles see more keys: those of all heads start first.
    const RowTile tile =
        FindTile(p, gpu::GridY() - 1 - gpu::BlockY(), TileShape<Stored, kHeadDim>::kRows);
    if (tile.first >= tile.rows || (p.only_long && tile.rows <= kTile)) return;
    TileBlock<Stored, kHeadDim, kWave>(p, tile).Run();
  }
}

}  // namespace ashlar::gpu_kernels
