// The kernel of skinny_product.h. A block owns neighbouring strips (matrix.h) of the weight, about
// as many as every other block; its waves divide k into slices. A stage is one slice of one strip:
// 256 bytes of each row, so that memory is read in long pieces. Each wave fills and empties a ring
// of stages of its own and brings its own slices of x; waves meet only where a group of strips ends
// and they add up. The ring runs on from group to group and is filled once before the kernels ahead
// have ended. Where a block's whole share fits the ring, a kernel for just so many stages
// multiplies them all at once. With few tokens each instruction runs about once, so that a block
// lasts as long as its code is: other loops stay loops.
#pragma once

#include "activation.h"
#include "matrix.h"
#include "skinny_product.h"
#include "wave.h"

namespace ashlar::gpu_kernels {

inline constexpr int kSliceBytes = 256;  // of one row
inline constexpr int kSliceVectors = kSliceBytes / 16;
inline constexpr int kSkinnyThreads = 256;
inline constexpr int kSquares =
    kSkinnyThreads / kSliceVectors;  // partial sums of a token's squares

// Of the weight. x has 8, so that a vector of float8 weights meets two of x.
GPU_BOTH int ValuesOfVector(ashlar_dtype weight) { return weight == ASHLAR_F8_E4M3 ? 16 : 8; }

GPU_BOTH int Slices(const FusedProductParams& p) {
  const int values = kSliceVectors * ValuesOfVector(p.type);
  return (static_cast<int>(p.pitch) + values - 1) / values;
}

// How a block does its share, and the parts of its shared memory, in bytes from its begin.
struct SkinnyLayout {
  int each = 0;          // strips of out that a block has
  int group = 0;         // strips of the weight that are added up at a time; even when gated
  int chunk = 0;         // slices of x that a wave keeps at a time
  int stages = 0;        // of each wave's ring: 6, 4 or 2, or all
  bool at_once = false;  // the ring holds all: SkinnyKernel<..., stages>
  int x_pitch = 0;       // bytes between tokens of x
  int sum_pitch = 0;     // floats between tokens of the sums; spreads them over the banks
  int x = 0, sums = 0, squares = 0, all = 0;
};

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

// kHalves: of an operand's 16 tokens, where a lane has two vectors of them. kAll: stages of a wave
// when the ring holds all of them, else 0.
template <class W, int kWave, int kHalves, int kAll>
class SkinnyBlock {
 public:
  GPU_DEVICE SkinnyBlock(const FusedProductParams& params, const SkinnyLayout& layout)
      : p(params),
        l(layout),
        slices(Slices(p)),
        begin(gpu::BlockX() * l.each),
        end(Least(begin + l.each, (p.rows + kStripRows - 1) / kStripRows)),
        ask{begin, 0, 0, 0} {}

  GPU_DEVICE void Run() {
#pragma unroll 1
    for (int i = 0; i < l.stages; ++i) Ask(ring + i * kStageBytes);
    if (p.norm != nullptr) {
      for (int i = thread * 32; i < p.cols; i += kSkinnyThreads * 32) gpu::Prefetch(p.norm + i);
      if (lane % kSliceVectors == 0) {
        for (int token = 0; token < p.tokens; ++token) *SquareOf(token) = 0;
      }
    }
    gpu::WaitForPrevious();
    gpu::ReleaseNext();  // not earlier: x would come behind the next kernel's weights
    const int own = (slices + kWaves - 1) / kWaves, group = l.group >> gated;
    [[maybe_unused]] int stage = 0;
#pragma unroll 1
    for (int first = begin; first < end; first += group) {
      const Around around = AroundOf(first, thread);  // asked for early
#pragma unroll 1
      for (int slice = 0; slice < own; slice += l.chunk) {
        const int count = Least(l.chunk, own - slice);
        if (first == begin || count < own) BringX(slice, count, first == begin);
        if constexpr (kAll > 0) {
          MultiplyAll(own);
        } else {
          stage = Multiply(first, slice, count, stage);
        }
      }
      gpu::SyncBlock();
      Finish(first, around);
      if (first + group < end) gpu::SyncBlock();
    }
  }

 private:
  using Layout = MatrixLayout<kWave>;
  using T = std::conditional_t<std::is_same_v<W, F8>, BF16, W>;  // what is multiplied
  static constexpr bool kF8 = std::is_same_v<W, F8>;
  static constexpr int kWaves = kSkinnyThreads / kWave;
  static constexpr int kStripRows = kWave / 4;
  static constexpr int kStageBytes = kStripRows * kSliceBytes;
  static constexpr int kValues = 16 / static_cast<int>(sizeof(W));  // of a vector
  static constexpr int kSteps = kSliceBytes / 64;                   // a lane's vectors of a row
  static constexpr int kParts = kF8 ? 2 : 1;                        // operands of one
  static constexpr int kXVectors = kSliceVectors * kParts;          // of x in a slice

  using Tokens = Operand<kWave>[kSteps * kParts];  // of a slice

  // Where a stage lies: strip `strip` of the group that begins at strip `first` of out, and slice
  // `slice` of this wave's, in the chunk that begins at slice `chunk`.
  struct Place {
    int first, chunk, strip, slice;
  };
  // What stands around an element of out beside the product.
  struct Around {
    float add = 0, by = 1, up_by = 1;
  };

  const FusedProductParams& p;
  const SkinnyLayout& l;
  const int slices, begin, end;  // begin, end: this block's strips of out
  Place ask;                     // what is asked for next
  const int gated = p.gated != 0;
  const int thread = gpu::ThreadX(), wave = thread / kWave, lane = thread % kWave;
  char* const ring = gpu::SharedMemory() + wave * l.stages * kStageBytes;
  char* const x = gpu::SharedMemory() + l.x + wave * p.tokens * l.x_pitch;
  float* const sums = reinterpret_cast<float*>(gpu::SharedMemory() + l.sums);
  float* const squares = reinterpret_cast<float*>(gpu::SharedMemory() + l.squares);

  GPU_DEVICE static int Least(int a, int b) { return a < b ? a : b; }
  GPU_DEVICE int Strips(int first) const { return Least(l.group, (end - first) << gated); }

  // The stages' order: slices of a chunk, strips of a group, chunks, groups. Zeros stand for what
  // lies past the weight.
  GPU_DEVICE void Ask(char* stage) {
    if (ask.first < end) {
      const int slice = wave + (ask.chunk + ask.slice) * kWaves;
      // Neighbouring rows are read side by side, so every other one has its halves exchanged.
      constexpr int kRows = kWave / kSliceVectors;  // that a wave copies at once
      const int at = lane / kSliceVectors, vector = lane % kSliceVectors;
      const int col = (slice * kSliceVectors + vector) * kValues;
      const int row = (ask.first + (ask.strip >> gated)) * kStripRows + at;
      const W* from = static_cast<const W*>(p.weight[ask.strip & gated]) + row * p.pitch + col;
      stage += at * kSliceBytes + (vector ^ at % 2 * 4) * 16;
#pragma unroll
      for (int v = 0; v < kStripRows / kRows; ++v) {
        gpu::CopyToShared(stage + v * kRows * kSliceBytes, from,
                          row + v * kRows < p.rows && col < p.pitch);
        from += kRows * p.pitch;
      }
      const int own = (slices + kWaves - 1) / kWaves;
      if (++ask.slice >= Least(l.chunk, own - ask.chunk)) {
        ask.slice = 0;
        if (++ask.strip >= Strips(ask.first)) {
          ask.strip = 0;
          ask.chunk += l.chunk;
          if (ask.chunk >= own) ask.chunk = 0, ask.first += l.group >> gated;
        }
      }
    }
    gpu::CommitCopies();
  }

  // Each is one lane's alone.
  GPU_DEVICE float* SquareOf(int token) const {
    return squares + token * kSquares + thread / kSliceVectors;
  }

  // `count` of this wave's slices of x, from its slice `first` on, times the norm's weight; zeros
  // past cols. With a norm also the sums of squares.
  GPU_DEVICE void BringX(int first, int count, bool squared) {
    constexpr int kBatch = 4;  // vectors of a lane on their way at once
    const int each = count * kXVectors, all = p.tokens * each;
#pragma unroll 1
    for (int done = 0; done < all; done += kBatch * kWave) {
      gpu::Vector value[kBatch];
      gpu::Four by[kBatch][2];
      int token[kBatch], at[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int i = done + b * kWave + lane;
        token[b] = p.tokens == 1 ? 0 : i / each;
        at[b] = i - token[b] * each;
        const int slice = wave + (first + at[b] / kXVectors) * kWaves;
        const int col = (slice * kXVectors + at[b] % kXVectors) * 8;
        value[b] = {}, by[b][0] = {}, by[b][1] = {};
        if (i >= all || col >= p.cols) continue;
        const char* row = static_cast<const char*>(p.x) + token[b] * p.x_row_bytes;
        value[b] = *reinterpret_cast<const gpu::Vector*>(row + col * sizeof(T));
        if (p.norm == nullptr) continue;
        by[b][0] = reinterpret_cast<const gpu::Four*>(p.norm + col)[0];
        by[b][1] = reinterpret_cast<const gpu::Four*>(p.norm + col)[1];
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (done + b * kWave >= all) break;
        if (p.norm != nullptr) {
          float square = Norm(value[b], by[b]);
#pragma unroll
          for (int mask = kSliceVectors / 2; mask > 0; mask /= 2) {
            square += gpu::ShuffleXor<kWave>(square, mask);
          }
          if (squared && lane % kSliceVectors == 0 && token[b] < p.tokens) {
            *SquareOf(token[b]) += square;
          }
        }
        if (token[b] >= p.tokens || at[b] >= each) continue;
        *reinterpret_cast<gpu::Vector*>(x + token[b] * l.x_pitch + at[b] * 16) = value[b];
      }
    }
    gpu::SyncWave<kWave>();
  }

  GPU_DEVICE static float Norm(gpu::Vector& value, const gpu::Four (&by)[2]) {
    float square = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float low = Load(T{static_cast<uint16_t>(value.word[i])});
      const float high = Load(T{static_cast<uint16_t>(value.word[i] >> 16)});
      square += low * low + high * high;
      value.word[i] =
          Pack<T>(low * by[i / 2].value[i % 2 * 2], high * by[i / 2].value[i % 2 * 2 + 1]);
    }
    return square;
  }

  // A chunk's part of the sums of a group. Takes the stages from `stage` on; returns the next.
  GPU_DEVICE int Multiply(int first, int slice, int count, int stage) {
    const int strips = Strips(first);
#pragma unroll 1
    for (int strip = 0; strip < strips; ++strip) {
      float sum[kSteps][4] = {};  // for products that do not wait for each other
#pragma unroll 1
      for (int i = 0; i < count; ++i) {
        WaitStages(l.stages);
        gpu::SyncWave<kWave>();
        char* const here = ring + stage * kStageBytes;
        Tokens tokens = {};
        LoadTokens(x + i * kXVectors * 16, tokens);
        MultiplyStage(here, tokens, sum);
        gpu::SyncWave<kWave>();
        Ask(here);
        stage = stage + 1 == l.stages ? 0 : stage + 1;
      }
      Keep(strip, sum, slice > 0);
    }
    return stage;
  }

  // The same of a whole share, strips with `own` slices each.
  GPU_DEVICE void MultiplyAll(int own) {
    Tokens tokens = {};
    float sum[kAll][1][4] = {};
    gpu::WaitCopies<0>();
    gpu::SyncWave<kWave>();
    int slice = 0, strip = 0;
#pragma unroll
    for (int i = 0; i < kAll; ++i) {
      LoadTokens(x + slice * kXVectors * 16, tokens);
      MultiplyStage(ring + i * kStageBytes, tokens, sum[i]);
      if (++slice == own) slice = 0;
    }
    slice = 0;
#pragma unroll
    for (int i = 0; i < kAll; ++i) {
      Keep(strip, sum[i], slice > 0);
      if (++slice == own) slice = 0, ++strip;
    }
  }

  GPU_DEVICE void LoadTokens(const char* slice, Tokens& tokens) {
#pragma unroll
    for (int c = 0; c < kSteps * kParts; ++c) {
#pragma unroll
      for (int v = 0; v < kHalves; ++v) {
        // A row of no token gives sums that nothing reads.
        const int token = Least(Layout::Row(lane, v), p.tokens - 1);
        const int at = (c / kParts * 4 + Layout::Quarter(lane)) * kParts + c % kParts;
        tokens[c].vector[v] =
            *reinterpret_cast<const gpu::Vector*>(slice + token * l.x_pitch + at * 16);
      }
    }
  }

  template <int kSums>
  GPU_DEVICE void MultiplyStage(const char* stage, const Tokens& tokens, float (&sum)[kSums][4]) {
    const int row = Layout::Row(lane, 0), quarter = Layout::Quarter(lane);
    const char* const from = stage + row * kSliceBytes + quarter * 16;
    const int flip = row % 2 * 64;
#pragma unroll
    for (int c = 0; c < kSteps; ++c) {
      gpu::Vector part[kParts];
      Widen<W, T>(*reinterpret_cast<const gpu::Vector*>(from + (c * 64 ^ flip)), part);
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        MultiplyStrip<T, kWave>(sum[c % kSums], tokens[c * kParts + i], part[i]);
      }
    }
  }

  template <int kSums>
  GPU_DEVICE void Keep(int strip, const float (&sum)[kSums][4], bool more) {
    constexpr int kElements = kWave == 32 ? 2 * kHalves : 4;
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const int token = Layout::SlotRow(lane, Layout::Slot(e));
      if (token >= p.tokens) continue;
      float& kept = sums[(wave * p.tokens + token) * l.sum_pitch + strip * kStripRows +
                         Layout::OtherRow(lane, e)];
      float all = sum[0][e];
#pragma unroll
      for (int i = 1; i < kSums; ++i) all += sum[i][e];
      kept = more ? kept + all : all;
    }
  }

  // Of element i of a group: tokens of all its rows of out.
  struct Element {
    int token, at, row;
    bool exists;
  };
  GPU_DEVICE Element ElementOf(int first, int i) const {
    const int rows = (Strips(first) >> gated) * kStripRows, token = i / rows;
    const int at = i - token * rows, row = first * kStripRows + at;
    return {token, at, row, token < p.tokens && row < p.rows};
  }

  GPU_DEVICE Around AroundOf(int first, int i) const {
    Around around;
    const Element e = ElementOf(first, i);
    if (!e.exists) return around;
    if constexpr (kF8) {
      around.by = p.scales[0][e.row];
      if (gated != 0) around.up_by = p.scales[1][e.row];
    }
    if (p.bias != nullptr) around.add = p.bias[e.row];
    if (p.residual != nullptr) {
      const char* row = static_cast<const char*>(p.residual) + e.token * p.residual_row_bytes;
      around.add += LoadAs(p.out_dtype, row, e.row);
    }
    return around;
  }

  GPU_DEVICE float ScaleOf(int token) const {
    if (p.norm == nullptr) return 1;
    float total = 0;
#pragma unroll
    for (int i = 0; i < kSquares; ++i) total += squares[token * kSquares + i];
    return gpu::InverseRoot(total / static_cast<float>(p.cols) + p.eps);
  }

  // Adds up what the waves have of a group. `around` is of the thread's first element.
  GPU_DEVICE void Finish(int first, Around around) {
    const int elements = p.tokens * (Strips(first) >> gated) * kStripRows;
#pragma unroll 1
    for (int i = thread; i < elements; i += kSkinnyThreads) {
      if (i != thread) around = AroundOf(first, i);
      const Element e = ElementOf(first, i);
      if (!e.exists) continue;
      const float* part = sums + e.token * l.sum_pitch + (e.at / kStripRows << gated) * kStripRows +
                          e.at % kStripRows;
      float value = 0, up = 0;
#pragma unroll
      for (int w = 0; w < kWaves; ++w) {
        value += part[w * p.tokens * l.sum_pitch];
        if (gated != 0) up += part[w * p.tokens * l.sum_pitch + kStripRows];
      }
      const float scale = ScaleOf(e.token);
      value *= scale * around.by;
      value = gated != 0 ? Activate(p.activation, value) * (up * scale * around.up_by)
                         : value + around.add;
      StoreAs(p.out_dtype, static_cast<char*>(p.out) + e.token * p.out_row_bytes, e.row, value);
    }
  }
};

template <class W, int kWave, int kHalves, int kAll>
GPU_KERNEL void GPU_BOUNDS(kSkinnyThreads, 2)
    SkinnyKernel(const FusedProductParams params, const SkinnyLayout layout) {
  if constexpr (gpu::RunsWave<kWave>()) {
    SkinnyBlock<W, kWave, kHalves, kAll>(params, layout).Run();
  }
}

}  // namespace ashlar::gpu_kernels
