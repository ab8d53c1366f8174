// What an attention launch is given, which rows belong to which block, and where they lie. A row is
// a (token, head of the group) pair of one sequence and KV head, token-major.
#pragma once

#include "cache_tile.h"

namespace ashlar::gpu_kernels {

struct AttentionParams {
  ashlar_attention args;
  int group;                    // query heads that share a KV head
  float scale_log2;             // scores in powers of two
  int block_shift;              // log2 of block_tokens, or -1
  bool aligned;                 // entries of the cache begin at multiples of 16 bytes
  bool aligned_q, aligned_out;  // so do the rows of q and of out
  bool only_long;               // tiles: skip sequences that DecodeKernel carries out
  float* parts;                 // DecodeKernel: two parts of a sum for each block; Prefill: its own
  uint32_t* arrivals;           // DecodeKernel: [sequences, kv_heads], 0 between launches
};

// Of a packed row, in its sequence: 0 while there is one.
GPU_DEVICE int TokenOf(const AttentionParams& p, int row) {
  return row < p.group ? 0 : row / p.group;
}

// The rows of one block: which sequence, and its packed rows from `first` on.
struct RowTile {
  int sequence = -1;
  int first = 0, rows = 0;  // rows: of the whole sequence
  int query_start = 0, queries = 0, context = 0;

  // Of the token of a packed row, in its sequence.
  GPU_DEVICE int Position(const AttentionParams& p, int row) const {
    return context - queries + TokenOf(p, row);
  }
  // Of the first packed row of the sequence, and of its last.
  GPU_DEVICE int FirstPosition() const { return context - queries; }
  GPU_DEVICE int LastPosition() const { return context - 1; }
  // The first key that a query at this position sees.
  GPU_DEVICE static int Oldest(const AttentionParams& p, int position) {
    const int visible = position - p.args.window + 1;
    return p.args.window > 0 && visible > 0 ? visible : 0;
  }
};

GPU_DEVICE int PackedRows(const AttentionParams& p, int sequence) {
  return (p.args.query_start[sequence + 1] - p.args.query_start[sequence]) * p.group;
}

GPU_DEVICE RowTile TileOf(const AttentionParams& p, int sequence, int first) {
  RowTile tile;
  tile.sequence = sequence;
  tile.first = first;
  tile.rows = PackedRows(p, sequence);
  tile.query_start = p.args.query_start[sequence];
  tile.queries = p.args.query_start[sequence + 1] - tile.query_start;
  tile.context = p.args.context[sequence];
  return tile;
}

// Tiles of all sequences in one line: sequence s begins at floor(query_start[s] * group / rows) +
// s, which leaves room for the partly filled tile of each.
GPU_DEVICE RowTile FindTile(const AttentionParams& p, int index, int tile_rows) {
  int low = 0, high = p.args.sequences;  // the last sequence that begins at or before index
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    const int64_t begins = int64_t{p.args.query_start[middle]} * p.group / tile_rows + middle;
    if (begins <= index) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const auto begins =
      static_cast<int>(int64_t{p.args.query_start[low]} * p.group / tile_rows + low);
  return TileOf(p, low, (index - begins) * tile_rows);
}

GPU_DEVICE CacheWalk WalkOf(const AttentionParams& p, int sequence, int kv_head) {
  const ashlar_kv_view& kv = p.args.kv;
  return {static_cast<const char*>(kv.base) + kv_head * kv.head_stride,
          p.args.block_table + sequence * p.args.table_stride,
          kv.block_stride,
          kv.token_stride,
          p.block_shift,
          kv.block_tokens};
}

// The head of the group of a packed row in a tensor of heads: q or out.
GPU_DEVICE char* HeadOf(const AttentionParams& p, const ashlar_tensor& heads, const RowTile& tile,
                        int kv_head, int row) {
  const int token = TokenOf(p, row), head = kv_head * p.group + row - token * p.group;
  return static_cast<char*>(heads.data) + (tile.query_start + token) * heads.stride[0] +
         head * p.args.kv.head_dim * ElementBytes(heads.dtype);
}

// Where a lane keeps its operands of one tile of rows: no other lane looks there. They lie as
// Multiply takes them, 16 bytes a lane at a time.
template <class T, int kHeadDim, int kWave>
struct QueryRoom {
  using Layout = MatrixLayout<kWave>;
  static constexpr int kChunks = (kHeadDim + kChunk - 1) / kChunk, kVectors = Layout::kVectors;
  static constexpr int kBytes = kChunks * kVectors * kWave * 16;

  GPU_DEVICE static gpu::Vector* At(char* room, int chunk, int vector) {
    const int lane = gpu::ThreadX() % kWave;
    return reinterpret_cast<gpu::Vector*>(room) + (chunk * kVectors + vector) * kWave + lane;
  }

  // Rows `row` and on of the packed rows; zeros past the last and past the head's size.
  GPU_DEVICE static void Put(const AttentionParams& p, const RowTile& tile, int kv_head, int row,
                             char* room) {
    const int lane = gpu::ThreadX() % kWave, column = 8 * Layout::Quarter(lane);
    const char* head[kVectors];  // nullptr past the last row
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int packed = row + Layout::Row(lane, v);
      head[v] = packed < tile.rows ? HeadOf(p, p.args.q, tile, kv_head, packed) : nullptr;
    }
    const ashlar_dtype dtype = p.args.q.dtype;
    constexpr bool kConverts = std::is_same_v<T, F16>;  // what 8-bit caches are multiplied in
    if (p.aligned_q && (kConverts ? dtype != ASHLAR_F32 : dtype == ASHLAR_BF16)) {
      gpu::Vector vector[kChunks][kVectors];  // all on their way at once
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
          const bool inside = head[v] != nullptr && c * kChunk + column < kHeadDim;
          vector[c][v] = {};
          if (inside) {
            vector[c][v] =
                *reinterpret_cast<const gpu::Vector*>(head[v] + 2 * (c * kChunk + column));
          }
        }
      }
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if constexpr (kConverts) {
#pragma unroll
          for (int v = 0; v < kVectors; ++v) Convert<T>(dtype, vector[c][v]);
        }
        Keep(room, c, vector[c]);
      }
      return;
    }
    PutOthers(dtype, head[0], head[kVectors - 1], room);
  }

  // Heads of any type and alignment, of the lane's rows.
  GPU_APART static void PutOthers(ashlar_dtype dtype, const char* first_head,
                                  const char* second_head, char* room) {
    const int column = 8 * Layout::Quarter(gpu::ThreadX() % kWave);
#pragma unroll 1
    for (int c = 0; c < kChunks; ++c) {
      gpu::Vector vector[kVectors];
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const char* head = v == 0 ? first_head : second_head;
        const int first = c * kChunk + column;
        vector[v] = {};
        if (head == nullptr || first >= kHeadDim) continue;
        for (int i = 0; i < 4; ++i) {
          vector[v].word[i] =
              Pack<T>(LoadAs(dtype, head, first + 2 * i), LoadAs(dtype, head, first + 2 * i + 1));
        }
      }
      Keep(room, c, vector);
    }
  }

  GPU_DEVICE static void Keep(char* room, int chunk, const gpu::Vector* vector) {
    if constexpr (kVectors == 1) {
      *At(room, chunk, 0) = vector[0];
    } else {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        *At(room, chunk, h) = {{vector[0].word[2 * h], vector[1].word[2 * h],
                                vector[0].word[2 * h + 1], vector[1].word[2 * h + 1]}};
      }
    }
  }

  GPU_DEVICE static Operand<kWave> Get(char* room, int chunk) {
    Operand<kWave> operand;
    if constexpr (kVectors == 1) {
      operand.vector[0] = *At(room, chunk, 0);
    } else {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const gpu::Vector half = *At(room, chunk, h);
        operand.vector[0].word[2 * h] = half.word[0];
        operand.vector[1].word[2 * h] = half.word[1];
        operand.vector[0].word[2 * h + 1] = half.word[2];
        operand.vector[1].word[2 * h + 1] = half.word[3];
      }
    }
    return operand;
  }
};

}  // namespace ashlar::gpu_kernels
