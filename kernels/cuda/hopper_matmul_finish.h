// What becomes of a tile's sums: scales, bias, residual or gate, and out.
#pragma once

#include "hopper_matmul_parts.h"
#include "hopper_products.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

inline constexpr int kSector = 32;  // what one prefetch brings

// Brings what the end of a tile reads of rows [first, end) near, for all tiles of the block.
GPU_DEVICE void PrefetchRows(const MatmulParams& p, int first, int end) {
  const int row = first + gpu::ThreadX() * (kSector / static_cast<int>(sizeof(float)));
  if (row >= end) return;
  for (const float* values : {p.scales[0], p.scales[1], p.bias}) {
    if (values != nullptr) Prefetch(values + row);
  }
}
// The same of the residual, which a kernel ahead may have written.
template <class Shape>
GPU_DEVICE void PrefetchResidual(const MatmulParams& p, int first, int end) {
  if (p.residual == nullptr) return;
  const int bytes = p.out_dtype == ASHLAR_F32 ? 4 : 2;
  const int sectors = ((end - first) * bytes + kSector - 1) / kSector;
  for (int i = gpu::ThreadX(); i < p.tokens * sectors; i += Shape::kConsumerThreads) {
    Prefetch(static_cast<const char*>(p.residual) + i / sectors * p.residual_row_bytes +
             first * bytes + i % sectors * kSector);
  }
}

template <class T, class Shape>
class MatmulFinish {
 public:
  static constexpr int kTokens = Shape::kTokens, kQuads = kTokens / 8;
  static constexpr bool kF8 = std::is_same_v<T, F8>;

  GPU_DEVICE MatmulFinish(const MatmulParams& p, const float (&sum)[kTokens / 2],
                          const Quads& quads)
      : p_(p), sum_(sum), quads_(quads) {}

  GPU_DEVICE void Run(int tile) const {
    if (quads_.first == quads_.end) return;
    if (p_.out_dtype == ASHLAR_F32) return As<float>(tile);
    if (p_.out_dtype == ASHLAR_BF16) return As<BF16>(tile);
    As<F16>(tile);
  }

 private:
  template <class Out>
  GPU_DEVICE void As(int tile) const {
    // This warp has two groups of 8 rows, and this thread of each two rows and every eighth token.
    const int group = tile * (kTileRows / 8) + 8 * warpgroup_ + 2 * warp_;
    if (p_.gated != 0) {
      Gated<Out>(group / 2 * 8 + 2 * (lane_ % 4));
    } else {
      Plain<Out>(group * 8 + 2 * (lane_ % 4));
    }
  }

  template <class Out>
  struct alignas(2 * sizeof(Out)) Pair {
    Out value[2];
  };

  GPU_DEVICE bool HasTokens(int quad) const { return 8 * quad < p_.tokens; }
  GPU_DEVICE int Token(int quad) const { return 8 * quad + lane_ / 4; }
  GPU_DEVICE float TokenScale(int token) const {
    return kF8 && token < p_.tokens ? p_.x_scales[token] : 1;
  }
  // Of two rows; 0 past the last.
  GPU_DEVICE float2 RowValues(const float* of, int row) const {
    return make_float2(row < p_.rows ? of[row] : 0, row + 1 < p_.rows ? of[row + 1] : 0);
  }

  // Where this thread's first token has its values of a row, and how far it is to its next token.
  struct Line {
    char* at;
    int64_t step;
    GPU_DEVICE Line(const void* data, int64_t row_bytes, int value_bytes, int token, int row)
        : at(static_cast<char*>(const_cast<void*>(data)) + token * row_bytes + row * value_bytes),
          step(8 * row_bytes) {}
    // Addresses of all tokens at once are more than there are registers for.
    GPU_DEVICE void Next() {
      at += step;
      asm volatile("" : "+l"(at));
    }
  };

  template <class Out>
  GPU_DEVICE Pair<Out> LoadPair(const char* at, int row) const {
    Pair<Out> pair{};
    const auto* from = reinterpret_cast<const Out*>(at);
    if (p_.pairs) return *reinterpret_cast<const Pair<Out>*>(from);
    pair.value[0] = from[0];
    if (row + 1 < p_.rows) pair.value[1] = from[1];
    return pair;
  }
  template <class Out>
  GPU_DEVICE void StorePair(char* at, int row, float first, float second) const {
    auto* to = reinterpret_cast<Out*>(at);
    const Pair<Out> pair = {{gpu_kernels::Store<Out>(first), gpu_kernels::Store<Out>(second)}};
    if (p_.pairs) {
      *reinterpret_cast<Pair<Out>*>(to) = pair;
    } else {
      to[0] = pair.value[0];
      if (row + 1 < p_.rows) to[1] = pair.value[1];
    }
  }

  // Out may be the residual: this thread's part of it is loaded before anything is stored.
  template <class Out>
  GPU_DEVICE void Plain(int row) const {
    float2 scale[2], bias[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      scale[half] = kF8 ? RowValues(p_.scales[0], row + 8 * half) : make_float2(1, 1);
      bias[half] = p_.bias == nullptr ? float2{} : RowValues(p_.bias, row + 8 * half);
    }
    Line out(p_.out, p_.out_row_bytes, sizeof(Out), Token(0), row);
    Line residual(p_.residual, p_.residual_row_bytes, sizeof(Out), Token(0), row);
    Pair<Out> added[kQuads][2] = {};
    if (p_.residual != nullptr) {
#pragma unroll
      for (int quad = 0; quad < kQuads; ++quad, residual.Next()) {
        if (Token(quad) >= p_.tokens || !quads_.Has(quad)) continue;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int at = row + 8 * half;
          if (at >= p_.rows) continue;
          added[quad][half] = LoadPair<Out>(residual.at + 8 * half * sizeof(Out), at);
        }
      }
    }
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad, out.Next()) {
      if (!HasTokens(quad) || quad >= quads_.end) return;
      if (quad < quads_.first) continue;
      const int token = Token(quad);
      const float by = TokenScale(token);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = row + 8 * half;
        float2 value = Transpose(sum_[4 * quad + 2 * half], sum_[4 * quad + 2 * half + 1]);
        if constexpr (kF8) value.x *= scale[half].x * by, value.y *= scale[half].y * by;
        if (token >= p_.tokens || at >= p_.rows) continue;
        const Pair<Out>& more = added[quad][half];
        StorePair<Out>(out.at + 8 * half * sizeof(Out), at,
                       value.x + bias[half].x + gpu_kernels::Load(more.value[0]),
                       value.y + bias[half].y + gpu_kernels::Load(more.value[1]));
      }
    }
  }

  template <class Out>
  GPU_DEVICE void Gated(int row) const {
    float2 gate_scale = make_float2(1, 1), up_scale = gate_scale;
    if constexpr (kF8) {
      gate_scale = RowValues(p_.scales[0], row);
      up_scale = RowValues(p_.scales[1], row);
    }
    Line out(p_.out, p_.out_row_bytes, sizeof(Out), Token(0), row);
#pragma unroll
    for (int quad = 0; quad < kQuads; ++quad, out.Next()) {
      if (!HasTokens(quad) || quad >= quads_.end) return;
      if (quad < quads_.first) continue;
      const int token = Token(quad);
      float2 gate = Transpose(sum_[4 * quad], sum_[4 * quad + 1]);
      float2 up = Transpose(sum_[4 * quad + 2], sum_[4 * quad + 3]);
      if constexpr (kF8) {
        const float by = TokenScale(token);
        gate.x *= gate_scale.x * by, gate.y *= gate_scale.y * by;
        up.x *= up_scale.x * by, up.y *= up_scale.y * by;
      }
      if (token >= p_.tokens || row >= p_.rows) continue;
      StorePair<Out>(out.at, row, Activate(gate.x) * up.x, Activate(gate.y) * up.y);
    }
  }

  // Both activations are x / (1 + 2^(x * (a + b * x^2))), see activation.h.
  GPU_DEVICE float Activate(float x) const {
    constexpr float kLog2E = 1.4426950409f, kGelu = 2 * 0.7978845608f * kLog2E;
    const bool silu = p_.activation == ASHLAR_SILU;
    const float a = silu ? -kLog2E : -kGelu, b = silu ? 0 : -kGelu * 0.044715f;
    return __fdividef(x, 1 + Exp2(x * fmaf(b, fminf(x * x, 1e30f), a)));
  }

  const MatmulParams& p_;
  const float (&sum_)[kTokens / 2];
  const Quads quads_;
  const int warpgroup_ = gpu::ThreadX() / 128, warp_ = gpu::ThreadX() / 32 % 4;
  const int lane_ = gpu::ThreadX() % 32;
};

}  // namespace ashlar::hopper

#endif
