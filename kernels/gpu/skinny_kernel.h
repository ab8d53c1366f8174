// The kernel of skinny_product.h. A block owns neighbouring strips (matrix.h) of the weight, about
// as many as every other block, and takes them in groups of kStrips; its waves divide k into
// slices. A stage is one slice of one strip: 256 bytes of each row, so that memory is read in long
// pieces. Each wave fills and empties a ring of stages of its own, without barriers of the block;
// the ring runs on from group to group and is filled once before the kernels ahead have ended. x
// lies in shared memory as a whole, normed, where there is room; else a wave brings the slice of x
// that it needs with the stage that needs it first. At the end of a group the waves add up.
#pragma once

#include "activation.h"
#include "matrix.h"
#include "skinny_product.h"
#include "wave.h"

namespace ashlar::gpu_kernels {

inline constexpr int kSliceBytes = 256;  // of one row
inline constexpr int kSliceVectors = kSliceBytes / 16;
inline constexpr int kSkinnyThreads = 256;

// Of the weight. x has 8, so that a vector of float8 weights meets two of x.
GPU_BOTH int ValuesOfVector(ashlar_dtype weight) { return weight == ASHLAR_F8_E4M3 ? 16 : 8; }

GPU_BOTH int Slices(const SkinnyParams& p) {
  const int values = kSliceVectors * ValuesOfVector(p.type);
  return (static_cast<int>(p.pitch) + values - 1) / values;
}
// Vectors of a token, and shares of them that waves have in turn.
GPU_BOTH int TokenVectors(const SkinnyParams& p) {
  return Slices(p) * kSliceVectors * (ValuesOfVector(p.type) / 8);
}
GPU_BOTH int TokenShares(const SkinnyParams& p, int wave) {
  return (TokenVectors(p) + wave - 1) / wave;
}

// The parts of a block's shared memory, in bytes from its begin.
struct SkinnyLayout {
  int stages = 0;   // of each wave's ring: 6, 4 or 2
  int x_slots = 0;  // of each wave: slices of x; 0: x lies there as a whole
  int x_pitch = 0;  // between tokens of x
  int x = 0, sums = 0, squares = 0, all = 0;
};

constexpr int Log2(int power) { return power == 1 ? 0 : 1 + Log2(power / 2); }

template <int kWave, int kStrips>
struct SkinnyShape {
  static constexpr int kWaves = kSkinnyThreads / kWave;
  static constexpr int kStripRows = kWave / 4;
  static constexpr int kVectors = kStripRows * kSliceVectors / kWave;  // of a lane in a stage
  static constexpr int kStageBytes = kStripRows * kSliceBytes;
  static constexpr int kSumPitch = kStrips * kStripRows + 8;  // spreads tokens over the banks
  static constexpr int kRowShift = Log2(kStrips * kStripRows);
};

// Where stages come from: strip after strip of a slice, slice after slice of a group, group after
// group.
template <class W, int kWave, int kStrips>
class SkinnySource {
 public:
  using Shape = SkinnyShape<kWave, kStrips>;

  GPU_DEVICE SkinnySource(const SkinnyParams& p, int first, int end, int wave, int lane)
      : p_(p), first_(first), end_(end), slice_(wave), wave_(wave) {
    row_ = lane / kSliceVectors;
    col_ = lane % kSliceVectors * kValues;
    // Neighbouring rows are read side by side, so every other one has its halves exchanged.
    to_ = row_ * kSliceBytes + ((lane % kSliceVectors) ^ (row_ % 2 * 4)) * 16;
    slices_ = Slices(p);
  }
  GPU_DEVICE bool Done() const { return first_ >= end_; }
  GPU_DEVICE bool BeginsSlice() const { return strip_ == 0; }
  GPU_DEVICE int slice() const { return slice_; }

  GPU_DEVICE void Ask(char* stage) const {
    const int gated = p_.gated != 0;
    const int strip = first_ + (strip_ >> gated), col = slice_ * kSliceVectors * kValues + col_;
    if (strip >= end_ || slice_ >= slices_) return;
    const void* matrix = (strip_ & gated) != 0 ? p_.weight[1] : p_.weight[0];
    const int row = strip * Shape::kStripRows + row_;
    const W* from = static_cast<const W*>(matrix) + row * p_.pitch + col;
    constexpr int kRows = kWave / kSliceVectors;  // that a wave copies at once
#pragma unroll
    for (int v = 0; v < Shape::kVectors; ++v) {
      gpu::CopyToShared(stage + to_ + v * kRows * kSliceBytes, from,
                        row + v * kRows < p_.rows && col < p_.pitch);
      from += kRows * p_.pitch;
    }
  }
  GPU_DEVICE void Advance() {
    if (++strip_ < kStrips) return;
    strip_ = 0;
    slice_ += Shape::kWaves;
    if (slice_ - wave_ < slices_) return;  // all waves have the same number of slices
    slice_ = wave_;
    first_ += p_.gated != 0 ? kStrips / 2 : kStrips;
  }

 private:
  static constexpr int kValues = 16 / static_cast<int>(sizeof(W));  // of a vector
  const SkinnyParams& p_;
  int first_, end_;  // strips of out: the group's first, and past the block's last
  int strip_ = 0, slice_, wave_;
  int row_, col_, to_, slices_;
};

// All of x to shared memory, times the norm's weight; zeros past cols. With a norm also the sums of
// squares, one a wave's share of a token.
template <class T, int kWave>
GPU_DEVICE void StageX(const SkinnyParams& p, char* x, int x_pitch, float* squares) {
  constexpr int kBatch = 4;  // vectors of a thread on their way at once
  const int vectors = TokenVectors(p), each = TokenShares(p, kWave) * kWave;
  for (int first = gpu::ThreadX(); first < p.tokens * each; first += kBatch * kSkinnyThreads) {
    gpu::Vector value[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int i = first + b * kSkinnyThreads, token = p.tokens == 1 ? 0 : i / each;
      const int col = (i - token * each) * 8;
      value[b] = {};
      if (token < p.tokens && col < p.cols) {
        const char* row = static_cast<const char*>(p.x) + token * p.x_row_bytes;
        value[b] = *reinterpret_cast<const gpu::Vector*>(row + col * sizeof(T));
      }
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      const int i = first + b * kSkinnyThreads, token = p.tokens == 1 ? 0 : i / each;
      const int at = i - token * each, col = at * 8;
      if (i >= p.tokens * each) break;
      if (p.norm != nullptr) {
        float square = 0, by[8] = {};
        if (col < p.cols) LoadFloats(ASHLAR_F32, p.norm, col, by);
#pragma unroll
        for (int word = 0; word < 4; ++word) {
          const uint32_t pair = value[b].word[word];
          const float low = Load(T{static_cast<uint16_t>(pair)});
          const float high = Load(T{static_cast<uint16_t>(pair >> 16)});
          square += low * low + high * high;
          value[b].word[word] = Pack<T>(low * by[2 * word], high * by[2 * word + 1]);
        }
        square = WaveSum<kWave>(square);
        if (at % kWave == 0) squares[i / kWave] = square;
      }
      if (at < vectors) {
        *reinterpret_cast<gpu::Vector*>(x + token * x_pitch + at * 16) = value[b];
      }
    }
  }
}

GPU_DEVICE void WaitStages(int stages) {
  if (stages == 6) return gpu::WaitCopies<5>();
  if (stages == 4) return gpu::WaitCopies<3>();
  gpu::WaitCopies<1>();
}

// A vector of 16 bytes of a row as the operands of kParts products.
template <class W, class T, int kParts>
GPU_DEVICE void Widen(const gpu::Vector& stored, gpu::Vector (&to)[kParts]) {
  if constexpr (std::is_same_v<W, T>) {
    to[0] = stored;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) WidenToBF16(stored.word[i], to[i / 2].word + i % 2 * 2);
  }
}

// kHalves: of an operand's 16 tokens, where a lane has two vectors of them. `each` strips of out a
// block.
template <class W, int kWave, int kStrips, int kHalves>
GPU_KERNEL void GPU_BOUNDS(kSkinnyThreads, 2)
    SkinnyKernel(const SkinnyParams p, const SkinnyLayout layout, int each) {
  if constexpr (gpu::RunsWave<kWave>()) {
    using Shape = SkinnyShape<kWave, kStrips>;
    using Layout = MatrixLayout<kWave>;
    constexpr int kWaves = Shape::kWaves, kStripRows = Shape::kStripRows;
    using T = std::conditional_t<std::is_same_v<W, F8>, BF16, W>;  // what is multiplied
    constexpr bool kF8 = std::is_same_v<W, F8>;
    constexpr int kSteps = kSliceBytes / 64;           // a lane's vectors of a row
    constexpr int kParts = kF8 ? 2 : 1;                // operands of one
    constexpr int kXVectors = kSliceVectors * kParts;  // of x in a slice
    constexpr int kElements = kWave == 32 ? 2 * kHalves : 4;
    constexpr int kTokens = kWave == 32 ? 8 * kHalves : kTile;
    constexpr int kOutputs = (kStrips * kStripRows * kTokens + kSkinnyThreads - 1) / kSkinnyThreads;
    constexpr int kSpread = 2;  // sums of a strip, for products that do not wait for each other
    gpu::ReleaseNext();

    const int thread = gpu::ThreadX(), wave = thread / kWave, lane = thread % kWave;
    const int slices = Slices(p), gated = p.gated != 0;
    const int group_strips = kStrips >> gated, row_shift = Shape::kRowShift - gated;
    const int all_strips = (p.rows + kStripRows - 1) / kStripRows;
    const int block_first = gpu::BlockX() * each;
    const int block_end = block_first + each < all_strips ? block_first + each : all_strips;

    char* const shared = gpu::SharedMemory();
    char* const ring = shared + wave * layout.stages * Shape::kStageBytes;
    const int slot_bytes = p.tokens * layout.x_pitch;
    char* const x_all = shared + layout.x;
    char* const x_ring = x_all + wave * layout.x_slots * slot_bytes;

    SkinnySource<W, kWave, kStrips> source(p, block_first, block_end, wave, lane);
    int ask_slot = 0;
    // x of the stage that is asked for next, when that begins a slice.
    const auto ask_x = [&](const SkinnySource<W, kWave, kStrips>& of) {
      if (layout.x_slots == 0 || of.Done() || !of.BeginsSlice()) return;
      if (of.slice() < slices) {
        for (int i = lane; i < p.tokens * kXVectors; i += kWave) {
          const int token = i / kXVectors, at = i % kXVectors;
          const int col = (of.slice() * kXVectors + at) * 8;
          const char* row = static_cast<const char*>(p.x) + token * p.x_row_bytes;
          gpu::CopyReused(x_ring + ask_slot * slot_bytes + token * layout.x_pitch + at * 16,
                          row + col * sizeof(T), col < p.cols);
        }
      }
      ask_slot = ask_slot + 1 == layout.x_slots ? 0 : ask_slot + 1;
    };

    auto late = source;  // for x, which may be asked for only once the kernels ahead have ended
    for (int stage = 0; stage < layout.stages; ++stage) {
      source.Ask(ring + stage * Shape::kStageBytes);
      if (layout.x_slots == 0) gpu::CommitCopies();
      source.Advance();
    }
    gpu::WaitForPrevious();
    float scale[kOutputs];
    for (float& value : scale) value = 1;
    if (layout.x_slots == 0) {
      auto* squares = reinterpret_cast<float*>(shared + layout.squares);
      StageX<T, kWave>(p, x_all, layout.x_pitch, squares);
      gpu::SyncBlock();
      if (p.norm != nullptr) {
        const int parts = TokenShares(p, kWave);
#pragma unroll
        for (int j = 0; j < kOutputs; ++j) {
          const int token = (thread + j * kSkinnyThreads) >> row_shift;
          if (token >= p.tokens) break;
          float total = 0;
          for (int i = 0; i < parts; ++i) total += squares[token * parts + i];
          scale[j] = 1.0f / sqrtf(total / static_cast<float>(p.cols) + p.eps);
        }
      }
    } else {
      for (int stage = 0; stage < layout.stages; ++stage) {
        ask_x(late);
        gpu::CommitCopies();
        late.Advance();
      }
    }

    // This lane's vectors of a stage and of a slice of x.
    const int strip_row = Layout::Row(lane, 0), quarter = Layout::Quarter(lane);
    const int from = strip_row * kSliceBytes + quarter * 16, flip = strip_row % 2 * 64;
    const int x_from = Layout::Row(lane, 0) * layout.x_pitch + quarter * kParts * 16;
    int stage = 0, slot = 0, turn = 0;
    for (int first = block_first; first < block_end; first += group_strips, turn ^= 1) {
      float addend[kOutputs];  // what does not depend on the product, asked for early
      [[maybe_unused]] float by_row[kOutputs] = {}, up_by_row[kOutputs] = {};
#pragma unroll
      for (int j = 0; j < kOutputs; ++j) {
        const int i = thread + j * kSkinnyThreads;
        const int token = i >> row_shift, row = first * kStripRows + i - (token << row_shift);
        addend[j] = 0;
        if (token >= p.tokens || row >= p.rows) continue;
        if constexpr (kF8) {
          by_row[j] = p.scales[0][row];
          if (gated != 0) up_by_row[j] = p.scales[1][row];
        }
        if (p.bias != nullptr) addend[j] = p.bias[row];
        if (p.residual != nullptr) {
          addend[j] +=
              LoadAs(p.out_dtype,
                     static_cast<const char*>(p.residual) + token * p.residual_row_bytes, row);
        }
      }
      float sum[kStrips][kSpread][4] = {};
      for (int slice = wave; slice - wave < slices; slice += kWaves) {
        Operand<kWave> x[kSteps * kParts] = {};
#pragma unroll
        for (int s = 0; s < kStrips; ++s) {
          WaitStages(layout.stages);
          gpu::SyncWave<kWave>();
          if (s == 0) {
            const char* at =
                layout.x_slots == 0 ? x_all + slice * kXVectors * 16 : x_ring + slot * slot_bytes;
            if (slice < slices) {
#pragma unroll
              for (int v = 0; v < kHalves; ++v) {
                if (Layout::Row(lane, v) >= p.tokens) break;
#pragma unroll
                for (int i = 0; i < kSteps * kParts; ++i) {
                  x[i].vector[v] = *reinterpret_cast<const gpu::Vector*>(
                      at + x_from + v * 8 * layout.x_pitch + i / kParts * 64 * kParts +
                      i % kParts * 16);
                }
              }
            }
            slot = slot + 1 >= layout.x_slots ? 0 : slot + 1;
          }
          char* const here = ring + stage * Shape::kStageBytes;
          if (slice < slices && first + (s >> gated) < block_end) {
            gpu::Vector rows[kSteps];
#pragma unroll
            for (int c = 0; c < kSteps; ++c) {
              rows[c] = *reinterpret_cast<const gpu::Vector*>(here + from + (c * 64 ^ flip));
            }
#pragma unroll
            for (int c = 0; c < kSteps; ++c) {
              gpu::Vector part[kParts];
              Widen<W, T>(rows[c], part);
#pragma unroll
              for (int i = 0; i < kParts; ++i) {
                MultiplyStrip<T, kWave>(sum[s][c % kSpread], x[c * kParts + i], part[i]);
              }
            }
          }
          gpu::SyncWave<kWave>();
          ask_x(source);
          source.Ask(here);
          gpu::CommitCopies();
          source.Advance();
          stage = stage + 1 == layout.stages ? 0 : stage + 1;
        }
      }

      // Two sets of sums in turn: when a wave writes one, all have read it the time before.
      float* const sums = reinterpret_cast<float*>(shared + layout.sums) +
                          turn * kWaves * p.tokens * Shape::kSumPitch;
#pragma unroll
      for (int s = 0; s < kStrips; ++s) {
#pragma unroll
        for (int e = 0; e < kElements; ++e) {
          const int token = Layout::SlotRow(lane, Layout::Slot(e));
          if (token >= p.tokens) continue;
          sums[(wave * p.tokens + token) * Shape::kSumPitch + s * kStripRows +
               Layout::OtherRow(lane, e)] = sum[s][0][e] + sum[s][1][e];
        }
      }
      gpu::SyncBlock();
#pragma unroll
      for (int j = 0; j < kOutputs; ++j) {
        const int i = thread + j * kSkinnyThreads;
        const int token = i >> row_shift, at = i - (token << row_shift);
        const int row = first * kStripRows + at;
        if (token >= p.tokens || row >= p.rows || row >= block_end * kStripRows) continue;
        const float* part = sums + token * Shape::kSumPitch +
                            (at / kStripRows << gated) * kStripRows + at % kStripRows;
        float value = 0, up = 0;
#pragma unroll
        for (int w = 0; w < kWaves; ++w) {
          value += part[w * p.tokens * Shape::kSumPitch];
          if (gated != 0) up += part[w * p.tokens * Shape::kSumPitch + kStripRows];
        }
        value *= scale[j];
        if constexpr (kF8) {
          value *= by_row[j];
          if (gated != 0) up *= up_by_row[j];
        }
        value = gated != 0 ? Activate(p.activation, value) * (up * scale[j]) : value + addend[j];
        StoreAs(p.out_dtype, static_cast<char*>(p.out) + token * p.out_row_bytes, row, value);
      }
    }
  }
}

}  // namespace ashlar::gpu_kernels
