// What becomes of a tile's sums: scales, bias, residual or gate, and out. Short loops: a kernel's
// code is read from memory like its weights.
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
    if (values != nullptr) gpu::Prefetch(values + row);
  }
}
// The same of the residual, which a kernel ahead may have written.
template <class Shape>
GPU_DEVICE void PrefetchResidual(const MatmulParams& p, int first, int end) {
  if (p.residual == nullptr) return;
  const int bytes = p.out_dtype == ASHLAR_F32 ? 4 : 2;
  const int sectors = ((end - first) * bytes + kSector - 1) / kSector;
  for (int i = gpu::ThreadX(); i < p.tokens * sectors; i += Shape::kConsumerThreads) {
    gpu::Prefetch(static_cast<const char*>(p.residual) + i / sectors * p.residual_row_bytes +
                  first * bytes + i % sectors * kSector);
  }
}

template <class T, class Shape>
class MatmulFinish {
 public:
  GPU_DEVICE MatmulFinish(const MatmulParams& p, const UnitLine& line,
                          const MatmulSums<Shape>& sums, int tile)
      : p_(p), sums_(sums), parts_(p, line, tile) {
    // Of a tile of gates and ups, each two lanes have 8 gates, the next two their ups.
    const int lane = gpu::ThreadX() % 32;
    row_ = p.gated != 0 ? tile * (kTileRows / 2) + lane / 4 * 8 + lane % 2 * 4
                        : tile * kTileRows + lane * 4;
    ups_ = p.gated != 0 && lane % 4 >= 2;
  }

  GPU_DEVICE void Run() const {
    parts_.HandOut(sums_);
    const float4 scale = kF8 ? RowValues(p_.scales[ups_], 1) : RowValues(nullptr, 1);
    const float4 bias = RowValues(p_.bias, 0);
#pragma unroll 1
    for (int quad = parts_.first_quad; quad < parts_.end_quad; quad += kFew) {
      float4 value[kFew];
      float by[kFew];  // the scale of a token
#pragma unroll
      for (int i = 0; i < kFew; ++i) {
        const int token = Token(quad + i);
        by[i] = kF8 && token < p_.tokens ? p_.x_scales[token] : 1;
        value[i] = sums_.Four(min(quad + i, kQuads - 1));
      }
      parts_.Add(quad, value);
#pragma unroll
      for (int i = 0; i < kFew; ++i) {
        float4& v = value[i];
        v = make_float4(v.x * scale.x * by[i] + bias.x, v.y * scale.y * by[i] + bias.y,
                        v.z * scale.z * by[i] + bias.z, v.w * scale.w * by[i] + bias.w);
        if (p_.gated != 0) v = make_float4(Gated(v.x), Gated(v.y), Gated(v.z), Gated(v.w));
      }
      if (p_.out_dtype == ASHLAR_F32) {
        Write<float>(quad, value);
      } else if (p_.out_dtype == ASHLAR_BF16) {
        Write<BF16>(quad, value);
      } else {
        Write<F16>(quad, value);
      }
    }
  }

 private:
  static constexpr bool kF8 = std::is_same_v<T, F8>;
  static constexpr int kQuads = Shape::kTokens / 8, kFew = kQuads < 4 ? kQuads : 4;

  template <class Out>
  struct alignas(4 * sizeof(Out)) Four {
    Out value[4];
  };

  // Of this thread's rows.
  GPU_DEVICE float4 RowValues(const float* of, float otherwise) const {
    float value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      value[i] = of != nullptr && row_ + i < p_.rows ? of[row_ + i] : otherwise;
    }
    return make_float4(value[0], value[1], value[2], value[3]);
  }

  // Out may be the residual: that is loaded before anything is stored.
  template <class Out>
  GPU_DEVICE void Write(int quad, const float4 (&value)[kFew]) const {
    Four<Out> residual[kFew] = {};
    if (p_.residual != nullptr) {
#pragma unroll
      for (int i = 0; i < kFew; ++i) {
        if (Has(quad + i)) residual[i] = Load<Out>(p_.residual, p_.residual_row_bytes, quad + i);
      }
    }
#pragma unroll
    for (int i = 0; i < kFew; ++i) {
      if (!Has(quad + i)) continue;
      const float4& v = value[i];
      const Out* const more = residual[i].value;
      const Four<Out> four = {{gpu_kernels::Store<Out>(v.x + gpu_kernels::Load(more[0])),
                               gpu_kernels::Store<Out>(v.y + gpu_kernels::Load(more[1])),
                               gpu_kernels::Store<Out>(v.z + gpu_kernels::Load(more[2])),
                               gpu_kernels::Store<Out>(v.w + gpu_kernels::Load(more[3]))}};
      Out* const to = At<Out>(p_.out, p_.out_row_bytes, quad + i);
      if (p_.fours) {
        *reinterpret_cast<Four<Out>*>(to) = four;
        continue;
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (row_ + j < p_.rows) to[j] = four.value[j];
      }
    }
  }

  // Whether this thread has something to write there.
  GPU_DEVICE bool Has(int quad) const {
    return quad < parts_.end_quad && Token(quad) < p_.tokens && row_ < p_.rows && !ups_;
  }
  GPU_DEVICE static int Token(int quad) { return 8 * quad + gpu::ThreadX() / 32; }

  template <class Out>
  GPU_DEVICE Out* At(const void* data, int64_t row_bytes, int quad) const {
    char* const rows = static_cast<char*>(const_cast<void*>(data));
    return reinterpret_cast<Out*>(rows + Token(quad) * row_bytes) + row_;
  }
  template <class Out>
  GPU_DEVICE Four<Out> Load(const void* data, int64_t row_bytes, int quad) const {
    const Out* const from = At<Out>(data, row_bytes, quad);
    if (p_.fours) return *reinterpret_cast<const Four<Out>*>(from);
    Four<Out> four{};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (row_ + j < p_.rows) four.value[j] = from[j];
    }
    return four;
  }

  // Of a gate, where the lane two further has its up. Both activations are
  // x / (1 + 2^(x * (a + b * x^2))), see activation.h.
  GPU_DEVICE float Gated(float x) const {
    constexpr float kLog2E = 1.4426950409f, kGelu = 2 * 0.7978845608f * kLog2E;
    const float up = gpu::ShuffleXor<32>(x, 2);
    const bool silu = p_.activation == ASHLAR_SILU;
    const float a = silu ? -kLog2E : -kGelu, b = silu ? 0 : -kGelu * 0.044715f;
    return __fdividef(x, 1 + gpu::Exp2(x * fmaf(b, fminf(x * x, 1e30f), a))) * up;
  }

  const MatmulParams& p_;
  const MatmulSums<Shape>& sums_;
  const MatmulParts<Shape> parts_;
  int row_;   // of out: this thread's first
  bool ups_;  // it has ups
};

}  // namespace ashlar::hopper

#endif
