// Causal attention over the paged cache. One block carries the query heads that share a KV head:
// its rows are (token, head of the group) pairs, token-major, so a decode step of any group size
// fills the same tiles as a prompt. Keys and values pass through shared memory in tiles, scores and
// sums stay in registers.
//   kSplitKeys false: each wave has 16 rows and sees all keys. Bound by flops.
//   kSplitKeys true: all waves share 16 rows and divide the keys, and blocks divide them further;
//     CombineKernel adds the parts up. Bound by bytes.
#pragma once

#include "attention_rows.h"

namespace ashlar::gpu_kernels {

// Everything that the parts of the kernel share.
template <class T, int kHeadDim, int kWave, bool kSplitKeys>
struct AttentionBlock {
  using Shape = AttentionShape<kHeadDim, kSplitKeys>;
  using Layout = MatrixLayout<kWave>;
  static constexpr int kThreads = Shape::kWaves * kWave;
  static constexpr int kScoreTiles = Shape::kWaveKeys / kTile;
  static constexpr int kValueTiles = kHeadDim / kTile;

  const AttentionParams& p;
  const RowTile tile;
  const int kv_head = gpu::BlockY(), thread = gpu::ThreadX();
  const int wave = thread / kWave, lane = thread % kWave;
  T* const shared_q = reinterpret_cast<T*>(gpu::SharedMemory());
  T* const stages = shared_q + Shape::kRows * Shape::kKeyPitch;
  int first_key = 0, last_key = 0;  // that this block reads: [first_key, last_key)

  int position[Layout::kSlots];  // of this lane's rows; -1 past the last row
  float top[Layout::kSlots], weight[Layout::kSlots];
  Accumulator<kWave> sum[kValueTiles];

  GPU_DEVICE AttentionBlock(const AttentionParams& params, const RowTile& rows)
      : p(params), tile(rows) {}

  GPU_DEVICE T* Keys(int stage) { return stages + stage * Shape::kStageElements; }
  GPU_DEVICE T* Values(int stage) { return Keys(stage) + Shape::kKeys * Shape::kKeyPitch; }
  GPU_DEVICE int WaveRow() { return kSplitKeys ? 0 : wave * kTile; }
  GPU_DEVICE int Position(int row) {
    return tile.context - tile.queries + (tile.first + row) / p.group;
  }

  GPU_DEVICE const char* Entry(int key) {
    const ashlar_kv_view& kv = p.args.kv;
    const int index = p.block_shift >= 0 ? key >> p.block_shift : key / kv.block_tokens;
    const int token = key - index * kv.block_tokens;
    const int64_t block = p.args.block_table[tile.sequence * p.args.table_stride + index];
    return static_cast<const char*>(kv.base) + block * kv.block_stride + kv_head * kv.head_stride +
           token * kv.token_stride;
  }

  // K and V of the tile that begins at `key`; zeros where no row may look.
  GPU_DEVICE void LoadTile(int key, int stage) {
    constexpr int kPieces = kHeadDim / 8;  // 16 bytes each, of K and again of V
    T* keys = Keys(stage);
    T* values = Values(stage);
    for (int i = thread; i < Shape::kKeys * 2 * kPieces; i += kThreads) {
      const int row = i / (2 * kPieces), piece = i % (2 * kPieces);
      const bool valid = key + row >= first_key && key + row < last_key;
      T* to = piece < kPieces ? keys + row * Shape::kKeyPitch + 8 * piece
                              : values + row * Shape::kValuePitch + 8 * (piece - kPieces);
      const char* from = valid ? Entry(key + row) + 16 * piece : nullptr;
      if (p.aligned || !valid) {
        gpu::CopyToShared(to, valid ? from : p.args.kv.base, valid);
      } else {
        for (int e = 0; e < 8; ++e) to[e] = reinterpret_cast<const T*>(from)[e];
      }
    }
    gpu::CommitCopies();
  }

  // The padding of K's rows takes part in products and holds zeros.
  GPU_DEVICE void ClearPadding() {
    constexpr int kPadding = Shape::kPaddedDim - kHeadDim;
    if constexpr (kPadding > 0) {
      for (int i = thread; i < Shape::kStages * Shape::kKeys * kPadding; i += kThreads) {
        const int row = i / kPadding, column = kHeadDim + i % kPadding;
        Keys(row / Shape::kKeys)[row % Shape::kKeys * Shape::kKeyPitch + column] = Store<T>(0);
      }
    }
  }

  GPU_DEVICE void LoadQueries() {
    for (int i = thread; i < Shape::kRows * Shape::kPaddedDim; i += kThreads) {
      const int row = i / Shape::kPaddedDim, column = i % Shape::kPaddedDim;
      const int packed = tile.first + row;
      float value = 0;
      if (packed < tile.rows && column < kHeadDim) {
        const int64_t token = tile.query_start + packed / p.group;
        const int head = kv_head * p.group + packed % p.group;
        value =
            LoadAs(p.args.q.dtype, static_cast<const char*>(p.args.q.data) + token * p.q_row_bytes,
                   int64_t{head} * kHeadDim + column);
      }
      shared_q[row * Shape::kKeyPitch + column] = Store<T>(value);
    }
  }

  GPU_DEVICE void Begin() {
    for (int slot = 0; slot < Layout::kSlots; ++slot) {
      const int row = WaveRow() + Layout::SlotRow(lane, slot);
      position[slot] = tile.first + row < tile.rows ? Position(row) : -1;
      top[slot] = -INFINITY;
      weight[slot] = 0;
    }
    for (int v = 0; v < kValueTiles; ++v) {
      for (int e = 0; e < Layout::kElements; ++e) sum[v].element[e] = 0;
    }
  }

  GPU_DEVICE bool Sees(int slot, int key) {
    return key <= position[slot] && key < last_key &&
           (p.args.window == 0 || key > position[slot] - p.args.window);
  }

  // Scores of this wave's rows with its keys of the tile at `key`, as powers of two.
  GPU_DEVICE void Score(int key, int stage, const Operand<kWave>* q, Accumulator<kWave>* scores) {
    const int first = kSplitKeys ? wave * Shape::kWaveKeys : 0;
#pragma unroll
    for (int t = 0; t < kScoreTiles; ++t) {
      for (int e = 0; e < Layout::kElements; ++e) scores[t].element[e] = 0;
      const T* rows = Keys(stage) + (first + t * kTile) * Shape::kKeyPitch;
#pragma unroll
      for (int c = 0; c < Shape::kChunks; ++c) {
        const Operand<kWave> k = LoadRows<T, kWave>(rows + c * kChunk, Shape::kKeyPitch);
        if constexpr (Shape::kWide) {
          Multiply<T, kWave>(
              scores[t],
              LoadRows<T, kWave>(shared_q + WaveRow() * Shape::kKeyPitch + c * kChunk,
                                 Shape::kKeyPitch),
              k);
        } else {
          Multiply<T, kWave>(scores[t], q[c], k);
        }
      }
#pragma unroll
      for (int e = 0; e < Layout::kElements; ++e) {
        const bool sees =
            Sees(Layout::Slot(e), key + first + t * kTile + Layout::OtherRow(lane, e));
        scores[t].element[e] = sees ? scores[t].element[e] * p.scale_log2 : -INFINITY;
      }
    }
  }

  // Turns scores into weights relative to the new largest score and rescales what was summed.
  GPU_DEVICE void Weigh(Accumulator<kWave>* scores) {
#pragma unroll
    for (int slot = 0; slot < Layout::kSlots; ++slot) {
      float largest = top[slot];
#pragma unroll
      for (int t = 0; t < kScoreTiles; ++t) {
#pragma unroll
        for (int e = 0; e < Layout::kElements; ++e) {
          if (Layout::Slot(e) == slot) largest = fmaxf(largest, scores[t].element[e]);
        }
      }
      largest = RowMax<kWave>(largest);
      // A row that has seen no key yet has weights of 2^-inf.
      const float base = largest == -INFINITY ? 0 : largest;
      const float shrink = exp2f(top[slot] - base);
      top[slot] = largest;
      float total = 0;
#pragma unroll
      for (int t = 0; t < kScoreTiles; ++t) {
#pragma unroll
        for (int e = 0; e < Layout::kElements; ++e) {
          if (Layout::Slot(e) != slot) continue;
          scores[t].element[e] = exp2f(scores[t].element[e] - base);
          total += scores[t].element[e];
        }
      }
      weight[slot] = weight[slot] * shrink + total;
#pragma unroll
      for (int v = 0; v < kValueTiles; ++v) {
#pragma unroll
        for (int e = 0; e < Layout::kElements; ++e) {
          if (Layout::Slot(e) == slot) sum[v].element[e] *= shrink;
        }
      }
    }
  }

  GPU_DEVICE void AddValues(int stage, const Accumulator<kWave>* scores) {
    const int first = kSplitKeys ? wave * Shape::kWaveKeys : 0;
#pragma unroll
    for (int c = 0; c < Shape::kWaveKeys / kChunk; ++c) {
      const Operand<kWave> weights = AsOperand<T, kWave>(scores[2 * c], scores[2 * c + 1]);
      const T* rows = Values(stage) + (first + c * kChunk) * Shape::kValuePitch;
#pragma unroll
      for (int v = 0; v < kValueTiles; ++v) {
        Multiply<T, kWave>(sum[v], weights,
                           LoadColumns<T, kWave>(rows + v * kTile, Shape::kValuePitch));
      }
    }
  }

  GPU_DEVICE void WalkKeys() {
    Operand<kWave> q[Shape::kWide ? 1 : Shape::kChunks];
    if constexpr (!Shape::kWide) {
#pragma unroll
      for (int c = 0; c < Shape::kChunks; ++c) {
        q[c] = LoadRows<T, kWave>(shared_q + WaveRow() * Shape::kKeyPitch + c * kChunk,
                                  Shape::kKeyPitch);
      }
    }
    const int begin = first_key / Shape::kKeys * Shape::kKeys;
    if (Shape::kStages == 2) LoadTile(begin, 0);
    int stage = 0;
    for (int key = begin; key < last_key; key += Shape::kKeys) {
      if (Shape::kStages == 2) {
        if (key + Shape::kKeys < last_key) {
          LoadTile(key + Shape::kKeys, stage ^ 1);
          gpu::WaitCopies<1>();
        } else {
          gpu::WaitCopies<0>();
        }
      } else {
        LoadTile(key, 0);
        gpu::WaitCopies<0>();
      }
      gpu::SyncBlock();
      Accumulator<kWave> scores[kScoreTiles];
      Score(key, stage, q, scores);
      Weigh(scores);
      AddValues(stage, scores);
      gpu::SyncBlock();  // the stage may be written again
      if (Shape::kStages == 2) stage ^= 1;
    }
#pragma unroll
    for (int slot = 0; slot < Layout::kSlots; ++slot) weight[slot] = RowSum<kWave>(weight[slot]);
  }

  GPU_DEVICE void StoreOut(int packed, int column, float value) {
    const int64_t token = tile.query_start + packed / p.group;
    const int head = kv_head * p.group + packed % p.group;
    StoreAs(p.args.out.dtype, static_cast<char*>(p.args.out.data) + token * p.out_row_bytes,
            int64_t{head} * kHeadDim + column, value);
  }

  GPU_DEVICE void WriteRows() {
#pragma unroll
    for (int v = 0; v < kValueTiles; ++v) {
#pragma unroll
      for (int e = 0; e < Layout::kElements; ++e) {
        const int slot = Layout::Slot(e);
        if (position[slot] < 0) continue;
        StoreOut(tile.first + WaveRow() + Layout::SlotRow(lane, slot),
                 v * kTile + Layout::OtherRow(lane, e), sum[v].element[e] / weight[slot]);
      }
    }
  }

  // Adds up what the waves have over their keys; the tiles' memory is free by now.
  GPU_DEVICE void MergeWaves(float* out) {
    constexpr int kPitch = kHeadDim + 2;
    float* mine = reinterpret_cast<float*>(stages) + wave * kTile * kPitch;
    for (int v = 0; v < kValueTiles; ++v) {
      for (int e = 0; e < Layout::kElements; ++e) {
        mine[Layout::SlotRow(lane, Layout::Slot(e)) * kPitch + v * kTile +
             Layout::OtherRow(lane, e)] = sum[v].element[e];
      }
    }
    for (int slot = 0; slot < Layout::kSlots; ++slot) {
      // The lanes of a row hold the same two numbers.
      float* row = mine + Layout::SlotRow(lane, slot) * kPitch;
      if (Layout::Quarter(lane) == 0) row[kHeadDim] = top[slot], row[kHeadDim + 1] = weight[slot];
    }
    gpu::SyncBlock();
    const float* all = reinterpret_cast<const float*>(stages);
    for (int i = thread; i < kTile * kHeadDim; i += kThreads) {
      const int row = i / kHeadDim, column = i % kHeadDim;
      if (tile.first + row >= tile.rows) continue;
      float largest = -INFINITY, total = 0, value = 0;
      for (int w = 0; w < Shape::kWaves; ++w) {
        largest = fmaxf(largest, all[(w * kTile + row) * kPitch + kHeadDim]);
      }
      for (int w = 0; w < Shape::kWaves; ++w) {
        const float* part = all + (w * kTile + row) * kPitch;
        const float factor = largest == -INFINITY ? 0 : exp2f(part[kHeadDim] - largest);
        total += factor * part[kHeadDim + 1];
        value += factor * part[column];
      }
      if (out == nullptr) {
        StoreOut(tile.first + row, column, value / total);
      } else {
        float* part = out + row * kPitch;
        part[column] = value;
        if (column == 0) part[kHeadDim] = largest, part[kHeadDim + 1] = total;
      }
    }
  }
};

template <class T, int kHeadDim, int kWave, bool kSplitKeys>
GPU_KERNEL void GPU_BOUNDS((AttentionShape<kHeadDim, kSplitKeys>::kWaves * kWave))
    AttentionKernel(const AttentionParams p) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    gpu::WaitForPrevious();
    using Shape = AttentionShape<kHeadDim, kSplitKeys>;
    RowTile tile;
    if constexpr (kSplitKeys) {
      tile = TileOf(p, gpu::BlockZ(), 0);
      if (tile.rows == 0 || tile.rows > kTile) return;
    } else {
      // Later tiles see more keys: they start first.
      tile = FindTile(p, gpu::GridX() - 1 - gpu::BlockX(), Shape::kRows);
      if (tile.first >= tile.rows || (p.only_long && tile.rows <= kTile)) return;
    }
    AttentionBlock<T, kHeadDim, kWave, kSplitKeys> block(p, tile);
    const int last_row =
        tile.first + Shape::kRows < tile.rows ? Shape::kRows - 1 : tile.rows - tile.first - 1;
    block.last_key = block.Position(last_row) + 1;
    if (p.args.window > 0) {
      const int visible = block.Position(0) - p.args.window + 1;
      block.first_key = visible > 0 ? visible : 0;
    }
    if constexpr (kSplitKeys) {
      const int from = gpu::BlockX() * p.split_keys;
      if (from >= block.last_key) return;
      if (from > block.first_key) block.first_key = from;
      if (from + p.split_keys < block.last_key) block.last_key = from + p.split_keys;
      if (block.first_key >= block.last_key) return;  // CombineKernel leaves it out too
    }
    block.LoadQueries();
    block.ClearPadding();
    gpu::SyncBlock();
    block.Begin();
    block.WalkKeys();
    if constexpr (kSplitKeys) {
      float* out = nullptr;
      if (p.parts != nullptr) {
        const int64_t index =
            (int64_t{tile.sequence} * p.args.kv.kv_heads + block.kv_head) * p.splits +
            gpu::BlockX();
        out = p.parts + index * kTile * (kHeadDim + 2);
      }
      block.MergeWaves(out);
    } else {
      block.WriteRows();
    }
  }
}

}  // namespace ashlar::gpu_kernels
