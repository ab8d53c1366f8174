// out = x * weight^T for any number of tokens: one block has 16 * kRowTiles rows of the weight and
// up to 16 * kTokenTiles tokens; its waves divide k and add up in shared memory. Weights go from
// memory straight to registers, 16 bytes a lane. Bound by the weight's bytes up to 16 tokens.
#pragma once

#include "matrix.h"

namespace ashlar::gpu_kernels {

struct MatmulParams {
  const void* weight;   // this part, rows padded to whole tiles
  const float* scales;  // [rows], of float8 rows; else NULL
  int64_t pitch;        // elements between its rows, a multiple of kChunk
  int rows;             // of this part
  const void* x;        // [tokens, cols]
  ashlar_dtype x_dtype;
  int64_t x_row_bytes;
  int tokens, cols;
  bool x_aligned;  // rows of x and cols allow accesses of eight values
  void* out;       // column 0 of this part
  ashlar_dtype out_dtype;
  int64_t out_row_bytes;
  const float* bias;     // or NULL
  const void* residual;  // column 0 of this part, of out's type; or NULL
  int64_t residual_row_bytes;
};

GPU_DEVICE float Addend(const MatmulParams& p, int64_t token, int row) {
  float value = p.bias == nullptr ? 0 : p.bias[row];
  if (p.residual != nullptr) {
    value += LoadAs(p.out_dtype,
                    static_cast<const char*>(p.residual) + token * p.residual_row_bytes, row);
  }
  return value;
}

template <int kTokenTiles>
struct MatmulShape {
  static constexpr int kWaves = 8;
  static constexpr int kRowTiles = kTokenTiles > 2 ? 2 : 1;
  static constexpr int kUnroll =
      kTokenTiles > 2 ? 1 : 4;  // chunks whose weights are asked for at once
  static constexpr int kBlockRows = kTile * kRowTiles, kBlockTokens = kTile * kTokenTiles;
  static constexpr int kValues = kBlockRows * kBlockTokens;
  static constexpr size_t kSharedBytes = sizeof(float) * kValues * kWaves;
};

// Rows of x are tokens; zeros past the last token and the last column.
template <class T, int kWave>
GPU_DEVICE Operand<kWave> LoadTokens(const MatmulParams& p, int first_token, int k) {
  using Layout = MatrixLayout<kWave>;
  const int lane = gpu::ThreadX() % kWave;
  Operand<kWave> operand;
#pragma unroll
  for (int v = 0; v < Layout::kVectors; ++v) {
    const int token = first_token + Layout::Row(lane, v), col = k + 8 * Layout::Quarter(lane);
    operand.vector[v] = {};
    if (token >= p.tokens || col >= p.cols) continue;
    const char* row = static_cast<const char*>(p.x) + token * p.x_row_bytes;
    if (p.x_aligned) {
      operand.vector[v] = LoadEight<T>(p.x_dtype, row, col);
      continue;
    }
    for (int i = 0; i < 4; ++i) {
      const int at = col + 2 * i;
      const float low = at < p.cols ? LoadAs(p.x_dtype, row, at) : 0;
      const float high = at + 1 < p.cols ? LoadAs(p.x_dtype, row, at + 1) : 0;
      operand.vector[v].word[i] = Pack<T>(low, high);
    }
  }
  return operand;
}

// Rows stored as W are multiplied as T.
template <class T, int kWave, int kTokenTiles, class W = T>
GPU_KERNEL void GPU_BOUNDS(MatmulShape<kTokenTiles>::kWaves* kWave)
    MatmulKernel(const MatmulParams p) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    gpu::WaitForPrevious();
    using Shape = MatmulShape<kTokenTiles>;
    using Layout = MatrixLayout<kWave>;
    const int thread = gpu::ThreadX(), wave = thread / kWave, lane = thread % kWave;
    const int first_row = gpu::BlockX() * Shape::kBlockRows;
    const int first_token = gpu::BlockY() * Shape::kBlockTokens;
    const W* weight = static_cast<const W*>(p.weight) + first_row * p.pitch;
    const int row_tiles = (p.rows - first_row + kTile - 1) / kTile;  // that the part still has

    Accumulator<kWave> sum[Shape::kRowTiles][kTokenTiles];
    for (int r = 0; r < Shape::kRowTiles; ++r) {
      for (int t = 0; t < kTokenTiles; ++t) {
        for (int e = 0; e < Layout::kElements; ++e) sum[r][t].element[e] = 0;
      }
    }
    const int chunks = static_cast<int>(p.pitch / kChunk);
    for (int c = wave; c < chunks; c += Shape::kWaves * Shape::kUnroll) {
      Operand<kWave> w[Shape::kUnroll][Shape::kRowTiles];
#pragma unroll
      for (int u = 0; u < Shape::kUnroll; ++u) {
        const int chunk = c + u * Shape::kWaves;
        for (int r = 0; r < Shape::kRowTiles; ++r) {
          if (chunk < chunks && r < row_tiles) {
            w[u][r] = LoadStoredRows<W, T, kWave>(weight + r * kTile * p.pitch + chunk * kChunk,
                                                  static_cast<int>(p.pitch));
          } else {
            for (auto& vector : w[u][r].vector) vector = {};
          }
        }
      }
#pragma unroll
      for (int u = 0; u < Shape::kUnroll; ++u) {
        const int chunk = c + u * Shape::kWaves;
        if (chunk >= chunks) break;
#pragma unroll
        for (int t = 0; t < kTokenTiles; ++t) {
          const Operand<kWave> x = LoadTokens<T, kWave>(p, first_token + t * kTile, chunk * kChunk);
#pragma unroll
          for (int r = 0; r < Shape::kRowTiles; ++r) Multiply<T, kWave>(sum[r][t], w[u][r], x);
        }
      }
    }

    float* shared = reinterpret_cast<float*>(gpu::SharedMemory());  // [wave][token][row]
    for (int r = 0; r < Shape::kRowTiles; ++r) {
      for (int t = 0; t < kTokenTiles; ++t) {
        for (int e = 0; e < Layout::kElements; ++e) {
          const int row = r * kTile + Layout::SlotRow(lane, Layout::Slot(e));
          const int token = t * kTile + Layout::OtherRow(lane, e);
          shared[wave * Shape::kValues + token * Shape::kBlockRows + row] = sum[r][t].element[e];
        }
      }
    }
    gpu::SyncBlock();
    for (int i = thread; i < Shape::kValues; i += Shape::kWaves * kWave) {
      const int token = first_token + i / Shape::kBlockRows;
      const int row = first_row + i % Shape::kBlockRows;
      if (token >= p.tokens || row >= p.rows) continue;
      float value = 0;
      for (int w = 0; w < Shape::kWaves; ++w) value += shared[w * Shape::kValues + i];
      if (p.scales != nullptr) value *= p.scales[row];
      value += Addend(p, token, row);
      StoreAs(p.out_dtype, static_cast<char*>(p.out) + token * p.out_row_bytes, row, value);
    }
  }
}

// float32 weights: one wave a row of the weight, one block a run of 8 rows and one token.
template <int kWave>
GPU_KERNEL void FloatMatmulKernel(const MatmulParams p) {
  if constexpr (gpu::RunsWave<kWave>()) {
    gpu::ReleaseNext();
    gpu::WaitForPrevious();
    const int thread = gpu::ThreadX(), lane = thread % kWave;
    const int row = gpu::BlockX() * (gpu::ThreadsX() / kWave) + thread / kWave;
    const int token = gpu::BlockY();
    if (row >= p.rows) return;
    const float* weight = static_cast<const float*>(p.weight) + row * p.pitch;
    const char* x = static_cast<const char*>(p.x) + token * p.x_row_bytes;
    float sum = 0;
    for (int k = lane; k < p.cols; k += kWave) sum += weight[k] * LoadAs(p.x_dtype, x, k);
#pragma unroll
    for (int mask = kWave / 2; mask > 0; mask /= 2) sum += gpu::ShuffleXor<kWave>(sum, mask);
    if (lane != 0) return;
    sum += Addend(p, token, row);
    StoreAs(p.out_dtype, static_cast<char*>(p.out) + token * p.out_row_bytes, row, sum);
  }
}

}  // namespace ashlar::gpu_kernels
