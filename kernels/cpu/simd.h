// Vectors of 16 lanes, the one width in which every kernel of this folder is written. Each level
// (instruction set) gives them its own registers; the order of every reduction is the same on all.
//
// A file compiled for a level defines ASHLAR_CPU_LEVEL, its namespace. Such files include no header
// with inline functions of external linkage: the linker would keep one copy for the whole program,
// perhaps one with instructions that this CPU lacks.
#pragma once

#include <stdint.h>
#include <string.h>

#ifndef ASHLAR_CPU_LEVEL
#error "define ASHLAR_CPU_LEVEL before including a kernel header"
#endif

// Under a sanitizer, whose checks multiply what is repeated, the compiler may leave calls.
#ifdef ASHLAR_CPU_SANITIZED
#define ASHLAR_INLINE static inline
#else
#define ASHLAR_INLINE static inline __attribute__((always_inline))
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "simd_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include "simd_avx2.h"
#else
#include "simd_portable.h"
#endif

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

// e^x, at most 2 ulp from the true value; 0 below -87.3, and the value at 88 above it.
ASHLAR_INLINE F32x16 Exp(F32x16 x) {
  const F32x16 limited = Min(Max(x, Set1(-87.33654f)), Set1(88.0f));
  const F32x16 n = Round(Mul(limited, Set1(1.44269504f)));
  F32x16 r = Fma(n, Set1(-0.693359375f), limited);
  r = Fma(n, Set1(2.12194440e-4f), r);
  F32x16 p = Set1(1.9875691500e-4f);
  p = Fma(p, r, Set1(1.3981999507e-3f));
  p = Fma(p, r, Set1(8.3334519073e-3f));
  p = Fma(p, r, Set1(4.1665795894e-2f));
  p = Fma(p, r, Set1(1.6666665459e-1f));
  p = Fma(p, r, Set1(5.0000001201e-1f));
  p = Add(Fma(p, Mul(r, r), r), Set1(1.0f));
  return ZeroWhereBelow(x, -87.33654f, ScaleByPowerOf2(p, n));
}

// First n lanes of memory, zeros behind; reads nothing beyond them.
ASHLAR_INLINE F32x16 LoadFirst(const float* from, int64_t n) {
  float lanes[16] = {};
  memcpy(lanes, from, n * sizeof(float));
  return Load(lanes);
}
ASHLAR_INLINE void StoreFirst(float* to, F32x16 v, int64_t n) {
  float lanes[16];
  Store(lanes, v);
  memcpy(to, lanes, n * sizeof(float));
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
