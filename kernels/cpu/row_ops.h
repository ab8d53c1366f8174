// One row at a time: norms, activations, rotary embedding, conversions. Bound: bytes of the row.
#pragma once

#include "kernels.h"
#include "simd.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

static void RmsNormRow(float* out, const float* x, const float* weight, int64_t n, float eps) {
  F32x16 squares = Set1(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F32x16 v = Load(x + i);
    squares = Fma(v, v, squares);
  }
  if (i < n) {
    const F32x16 v = LoadFirst(x + i, n - i);
    squares = Fma(v, v, squares);
  }
  const F32x16 factor = Set1(1.0f / __builtin_sqrtf(ReduceAdd(squares) / (float)n + eps));
  for (i = 0; i + 16 <= n; i += 16) Store(out + i, Mul(Mul(Load(x + i), factor), Load(weight + i)));
  if (i < n)
    StoreFirst(out + i, Mul(Mul(LoadFirst(x + i, n - i), factor), LoadFirst(weight + i, n - i)),
               n - i);
}

static void AddRow(float* sum, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) Store(sum + i, Add(Load(sum + i), Load(x + i)));
  for (; i < n; ++i) sum[i] += x[i];
}

static void ScaleRow(float* out, const float* x, float scale, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) Store(out + i, Mul(Load(x + i), Set1(scale)));
  for (; i < n; ++i) out[i] = x[i] * scale;
}

ASHLAR_INLINE F32x16 Silu(F32x16 x) { return Div(x, Add(Set1(1.0f), Exp(Sub(Set1(0.0f), x)))); }
// 0.5 x (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3)
ASHLAR_INLINE F32x16 GeluTanh(F32x16 x) {
  const F32x16 cubic = Fma(Mul(Mul(x, x), x), Set1(0.044715f), x);
  return Div(x, Add(Set1(1.0f), Exp(Mul(cubic, Set1(-1.5957691216f)))));
}

template <F32x16 (*kActivation)(F32x16)>
ASHLAR_INLINE void GatedRow(float* out, const float* gate, const float* up, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) Store(out + i, Mul(kActivation(Load(gate + i)), Load(up + i)));
  if (i < n)
    StoreFirst(out + i, Mul(kActivation(LoadFirst(gate + i, n - i)), LoadFirst(up + i, n - i)),
               n - i);
}
static void SiluRow(float* out, const float* gate, const float* up, int64_t n) {
  GatedRow<Silu>(out, gate, up, n);
}
static void GeluTanhRow(float* out, const float* gate, const float* up, int64_t n) {
  GatedRow<GeluTanh>(out, gate, up, n);
}

static void RopeHalf(float* x, const float* cosine, const float* sine, int64_t half) {
  int64_t i = 0;
  for (; i + 16 <= half; i += 16) {
    const F32x16 a = Load(x + i), b = Load(x + half + i);
    const F32x16 c = Load(cosine + i), s = Load(sine + i);
    Store(x + i, Sub(Mul(a, c), Mul(b, s)));
    Store(x + half + i, Add(Mul(b, c), Mul(a, s)));
  }
  for (; i < half; ++i) {
    const float a = x[i], b = x[half + i];
    x[i] = a * cosine[i] - b * sine[i];
    x[half + i] = b * cosine[i] + a * sine[i];
  }
}

static void RopeInterleaved(float* x, const float* cosine, const float* sine, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cosine[i] - b * sine[i];
    x[2 * i + 1] = b * cosine[i] + a * sine[i];
  }
}

static void FromFloats(void* to, ashlar_dtype dtype, const float* from, int64_t n) {
  if (dtype == ASHLAR_F32) {
    memcpy(to, from, n * sizeof(float));
    return;
  }
  char* p = (char*)to;
  alignas(64) uint16_t last[16];
  for (int64_t i = 0; i < n; i += 16) {
    const bool whole = i + 16 <= n;
    const F32x16 v = whole ? Load(from + i) : LoadFirst(from + i, n - i);
    void* at = whole ? (void*)(p + 2 * i) : (void*)last;
    if (dtype == ASHLAR_F16)
      StoreF16(at, v);
    else
      StoreBf16(at, v);
    if (!whole) memcpy(p + 2 * i, last, 2 * (n - i));
  }
}

static void ToFloats(float* to, const void* from, ashlar_dtype dtype, int64_t n) {
  if (dtype == ASHLAR_F32) {
    memcpy(to, from, n * sizeof(float));
    return;
  }
  const char* p = (const char*)from;
  for (int64_t i = 0; i < n; i += 16) {
    const bool whole = i + 16 <= n;
    alignas(64) uint16_t last[16] = {};
    if (!whole) memcpy(last, p + 2 * i, 2 * (n - i));
    const void* at = whole ? (const void*)(p + 2 * i) : (const void*)last;
    const F32x16 v = dtype == ASHLAR_F16 ? LoadF16(at) : LoadBf16(at);
    if (whole)
      Store(to + i, v);
    else
      StoreFirst(to + i, v, n - i);
  }
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
