// The kernel of skinny_product.h. A block owns neighbouring rows of the weight, about as many as
// every other block; its waves divide k. Work goes by groups of kStrips strips (matrix.h) and, in a
// group, by chunks of k. Weights pass through a ring in shared memory whose slots are each filled
// and read by one lane, so that filling needs no barrier; the ring runs on from group to group and
// is filled once before the kernels ahead have ended. At the end of a group the waves add up.
#pragma once

#include "activation.h"
#include "matrix.h"
#include "skinny_product.h"

namespace ashlar::gpu_kernels {

template <int kWave, int kStrips>
struct SkinnyShape {
  static constexpr int kThreads = 256, kWaves = kThreads / kWave;
  static constexpr int kStripRows = kWave / 4;
  static constexpr int kVectorBytes = kWave * 16;
  // Vectors of a lane on their way: enough to cover the memory's latency at its full rate where
  // copies run on while the thread does.
  static constexpr int kRing = (kWave == 32 ? 16 : 4) / kStrips;
  static constexpr int kSumPitch = kStrips * kStripRows + 8;  // spreads tokens over the banks

  static constexpr size_t kRingBytes = size_t{kWaves} * kRing * kStrips * kVectorBytes;
  static size_t SharedBytes(const SkinnyParams& p) {
    const auto tokens = static_cast<size_t>(p.tokens);
    const size_t x = kWaves * kRing * tokens * kChunk * 2;
    const size_t sums = sizeof(float) * kWaves * tokens * kSumPitch;
    const size_t norm = sizeof(float) * (static_cast<size_t>(p.pitch) + kWaves * kTile);
    return kRingBytes + x + sums + (p.norm == nullptr ? 0 : norm);
  }
};

// The chunk that a wave works on in its step `step`: pairs of neighbours, so that a wave reads 128
// bytes of a row and the block whole stretches of it.
template <int kWaves>
GPU_DEVICE int ChunkOfStep(int wave, int step) {
  return (step / 2 * kWaves + wave) * 2 + step % 2;
}

// What a wave asks for next: chunks of a group, then of the group after it.
template <class T, int kWave, int kStrips>
struct SkinnyCursor {
  using Shape = SkinnyShape<kWave, kStrips>;
  using Layout = MatrixLayout<kWave>;
  const T* from[kStrips];  // this lane's part of each strip
  int first, end;          // strips of out: the group's first, and past the block's last
  int step = 0;

  GPU_DEVICE bool Done() const { return first >= end; }
  // With gates every other strip is one of ups.
  GPU_DEVICE void Enter(const SkinnyParams& p, int lane) {
    const int gated = p.gated != 0;
#pragma unroll
    for (int s = 0; s < kStrips; ++s) {
      int row = (first + (s >> gated)) * Shape::kStripRows + Layout::Row(lane, 0);
      if (row >= p.rows) row = p.rows - 1;
      const void* matrix = (s & gated) != 0 ? p.weight[1] : p.weight[0];
      from[s] = static_cast<const T*>(matrix) + row * p.pitch + 8 * Layout::Quarter(lane);
    }
  }
  GPU_DEVICE void Advance(const SkinnyParams& p, int lane, int steps) {
    if (++step < steps) return;
    step = 0;
    first += p.gated != 0 ? kStrips / 2 : kStrips;
    if (!Done()) Enter(p, lane);
  }
};

// kHalves: of an operand's 16 tokens, where a lane has two vectors of them.
template <class T, int kWave, int kStrips, int kHalves>
GPU_KERNEL void GPU_BOUNDS(256) SkinnyKernel(const SkinnyParams p, int strips_each) {
  if constexpr (gpu::RunsWave<kWave>()) {
    using Shape = SkinnyShape<kWave, kStrips>;
    using Layout = MatrixLayout<kWave>;
    constexpr int kWaves = Shape::kWaves, kRing = Shape::kRing, kStripRows = Shape::kStripRows;
    constexpr int kElements = kWave == 32 ? 2 * kHalves : 4;
    constexpr int kTokens = kWave == 32 ? 8 * kHalves : kTile;
    constexpr int kOutputs =
        (kStrips * kStripRows * kTokens + Shape::kThreads - 1) / Shape::kThreads;
    // Sums that a strip is spread over, for products that do not wait for each other.
    constexpr int kSpread = kStrips == 1 ? 4 : kStrips == 2 ? 2 : 1;
    gpu::ReleaseNext();

    const int thread = gpu::ThreadX(), wave = thread / kWave, lane = thread % kWave;
    const int quarter = Layout::Quarter(lane);
    const int chunks = static_cast<int>(p.pitch / kChunk);
    const int steps = (chunks + 2 * kWaves - 1) / (2 * kWaves) * 2;
    const int group_strips = p.gated != 0 ? kStrips / 2 : kStrips;

    char* const shared = gpu::SharedMemory();
    char* const ring = shared + wave * kRing * kStrips * Shape::kVectorBytes + lane * 16;
    char* const all_x = shared + Shape::kRingBytes;
    const int x_bytes = p.tokens * kChunk * 2;  // of one step
    char* const x_ring = all_x + wave * kRing * x_bytes + quarter * 16;
    auto* const sums = reinterpret_cast<float*>(all_x + kWaves * kRing * x_bytes);
    float* const norm = sums + kWaves * p.tokens * Shape::kSumPitch;
    float* const squares = norm + p.pitch;  // [wave][token]

    SkinnyCursor<T, kWave, kStrips> cursor;
    cursor.first = gpu::BlockX() * strips_each;
    cursor.end = cursor.first + strips_each;
    const int all_strips = (p.rows + kStripRows - 1) / kStripRows;
    if (cursor.end > all_strips) cursor.end = all_strips;
    const int block_first = cursor.first, block_end = cursor.end;
    cursor.Enter(p, lane);

    const auto ask_rows = [&](int stage) {
      const int chunk = ChunkOfStep<kWaves>(wave, cursor.step);
      if (cursor.Done() || chunk >= chunks) return;
#pragma unroll
      for (int s = 0; s < kStrips; ++s) {
        if (cursor.first + (s >> (p.gated != 0)) >= cursor.end) break;
        gpu::CopyToShared(ring + (stage * kStrips + s) * Shape::kVectorBytes,
                          cursor.from[s] + chunk * kChunk, true);
      }
    };
    const auto ask_x = [&](int stage, int step) {
      const int chunk = ChunkOfStep<kWaves>(wave, step);
      if (chunk >= chunks) return;
      const int col = chunk * kChunk + 8 * quarter;
#pragma unroll
      for (int v = 0; v < kHalves; ++v) {
        const int token = Layout::Row(lane, v);
        if (token >= p.tokens) break;
        const char* row = static_cast<const char*>(p.x) + token * p.x_row_bytes;
        gpu::CopyReused(x_ring + stage * x_bytes + token * kChunk * 2, row + col * sizeof(T),
                        col < p.cols);
      }
    };

    if (p.norm != nullptr) {
      for (int i = 4 * thread; i < p.pitch; i += 4 * Shape::kThreads) {
        gpu::CopyToShared(norm + i, p.norm + i, i < p.cols);
      }
    }
    gpu::CommitCopies();
    for (int stage = 0; stage < kRing; ++stage) {
      ask_rows(stage);
      gpu::CommitCopies();
      cursor.Advance(p, lane, steps);
    }
    if (p.norm != nullptr) {
      gpu::WaitCopies<kRing>();
      gpu::SyncBlock();
    }
    gpu::WaitForPrevious();
    int x_step = 0;  // that x is asked for next; each group asks for all of it again
    for (int stage = 0; stage < kRing; ++stage) {
      ask_x(stage, x_step);
      gpu::CommitCopies();
      if (++x_step == steps) x_step = 0;
    }

    float square[kHalves] = {};
    float scale[kOutputs];
    for (float& value : scale) value = 1;
    int stage = 0;
    for (int first = block_first; first < block_end; first += group_strips) {
      const int out_rows = group_strips * kStripRows;
      float addend[kOutputs];  // what does not depend on the product, asked for early
#pragma unroll
      for (int j = 0; j < kOutputs; ++j) {
        const int i = thread + j * Shape::kThreads;
        const int token = i / out_rows, row = first * kStripRows + i % out_rows;
        addend[j] = 0;
        if (token >= p.tokens || row >= p.rows) continue;
        if (p.bias != nullptr) addend[j] = p.bias[row];
        if (p.residual != nullptr) {
          addend[j] +=
              LoadAs(p.out_dtype,
                     static_cast<const char*>(p.residual) + token * p.residual_row_bytes, row);
        }
      }
      float sum[kSpread][kStrips][4] = {};
      for (int step = 0; step < steps; step += 2) {
#pragma unroll
        for (int parity = 0; parity < 2; ++parity) {
          gpu::WaitCopies<kRing - 1>();
          const int chunk = ChunkOfStep<kWaves>(wave, step + parity);
          if (chunk < chunks) {
            Operand<kWave> x{};
#pragma unroll
            for (int v = 0; v < kHalves; ++v) {
              const int token = Layout::Row(lane, v);
              if (token >= p.tokens) break;
              x.vector[v] = *reinterpret_cast<const gpu::Vector*>(x_ring + stage * x_bytes +
                                                                  token * kChunk * 2);
            }
            if (p.norm != nullptr) {
              const float* by = norm + chunk * kChunk + 8 * quarter;
#pragma unroll
              for (int v = 0; v < kHalves; ++v) {
#pragma unroll
                for (int word = 0; word < 4; ++word) {
                  const uint32_t pair = x.vector[v].word[word];
                  const float low = Load(T{static_cast<uint16_t>(pair)});
                  const float high = Load(T{static_cast<uint16_t>(pair >> 16)});
                  square[v] += low * low + high * high;
                  x.vector[v].word[word] = Pack<T>(low * by[2 * word], high * by[2 * word + 1]);
                }
              }
            }
#pragma unroll
            for (int s = 0; s < kStrips; ++s) {
              const gpu::Vector rows = *reinterpret_cast<const gpu::Vector*>(
                  ring + (stage * kStrips + s) * Shape::kVectorBytes);
              constexpr int kHalf = kSpread > 1 ? 1 : 0;
              const int at = kSpread == 4 ? 2 * parity : 0;
              MultiplyStrip<T, kWave>(sum[at][s], sum[at + kHalf][s], x, rows);
            }
          }
          ask_rows(stage);
          if (!cursor.Done()) ask_x(stage, x_step);
          gpu::CommitCopies();
          cursor.Advance(p, lane, steps);
          if (++x_step == steps) x_step = 0;
          stage = stage + 1 == kRing ? 0 : stage + 1;
        }
      }

      gpu::SyncBlock();  // the sums of the group before are read
#pragma unroll
      for (int s = 0; s < kStrips; ++s) {
#pragma unroll
        for (int e = 0; e < kElements; ++e) {
          const int token = Layout::SlotRow(lane, Layout::Slot(e));
          if (token >= p.tokens) continue;
          float value = sum[0][s][e];
          for (int i = 1; i < kSpread; ++i) value += sum[i][s][e];
          sums[(wave * p.tokens + token) * Shape::kSumPitch + s * kStripRows +
               Layout::OtherRow(lane, e)] = value;
        }
      }
      if (p.norm != nullptr && first == block_first) {
#pragma unroll
        for (int v = 0; v < kHalves; ++v) {
          const float total = RowSum<kWave>(square[v]);
          if (quarter == 0) squares[wave * kTile + Layout::Row(lane, v)] = total;
        }
      }
      gpu::SyncBlock();
#pragma unroll
      for (int j = 0; j < kOutputs; ++j) {
        const int i = thread + j * Shape::kThreads;
        const int token = i / out_rows, at = i % out_rows, row = first * kStripRows + at;
        if (p.norm != nullptr && first == block_first && token < p.tokens) {
          float total = 0;
          for (int w = 0; w < kWaves; ++w) total += squares[w * kTile + token];
          scale[j] = 1.0f / sqrtf(total / static_cast<float>(p.cols) + p.eps);
        }
        if (token >= p.tokens || row >= p.rows || row >= block_end * kStripRows) continue;
        const int gated = p.gated != 0;
        const float* from = sums + token * Shape::kSumPitch +
                            (at / kStripRows << gated) * kStripRows + at % kStripRows;
        float value = 0, up = 0;
        for (int w = 0; w < kWaves; ++w) {
          value += from[w * p.tokens * Shape::kSumPitch];
          if (gated != 0) up += from[w * p.tokens * Shape::kSumPitch + kStripRows];
        }
        value *= scale[j];
        if (gated != 0) {
          value = Activate(p.activation, value) * (up * scale[j]);
        } else {
          value += addend[j];
        }
        StoreAs(p.out_dtype, static_cast<char*>(p.out) + token * p.out_row_bytes, row, value);
      }
    }
  }
}

}  // namespace ashlar::gpu_kernels
