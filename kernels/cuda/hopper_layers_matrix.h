// Products of few tokens that leave no part of the instruction's tile idle.
#pragma once

#include "gpu/matrix.h"
#include "gpu/number.h"

namespace ashlar::hopper {

// Products of T, of 8 weight rows and 4 tokens over 32 values of k. A lane brings one vector of row
// lane / 4, quarter lane % 4, and of token lane / 4 % 4 the words 0 and 2 of that quarter's vector,
// or 1 and 3 in the wave's second half: the tile's rows 8.. are the same rows with those words, so
// that a row's sum is element (row, token) plus element (row + 8, token + 4).
template <class T>
GPU_DEVICE void MultiplyFolded(float (&sum)[4], const gpu::Vector& rows, const uint32_t (&x)[2]) {
  using namespace gpu_kernels;
#if defined(GPU_PTX)
  MultiplyWords<T>(sum, rows.word[0], rows.word[1], rows.word[2], rows.word[3], x[0], x[1]);
#else
  Operand<32> stationary{}, other{};
  stationary.vector[0] = {rows.word[0], rows.word[2], 0, 0};
  stationary.vector[1] = {rows.word[1], rows.word[3], 0, 0};
  other.vector[0] = {x[0], x[1], 0, 0};
  Accumulator<32> all{};
  for (int e = 0; e < 4; ++e) all.element[e] = sum[e];
  Multiply<T, 32, 1>(all, stationary, other);
  for (int e = 0; e < 4; ++e) sum[e] = all.element[e];
#endif
}

// Parts of x to a vector of weights that are stored as W.
template <class W>
inline constexpr int kFoldedParts = 2 / int{sizeof(W)};

// The same with a vector of rows stored as W, and words of Multiplied<W> of as many parts of x.
template <class W>
GPU_DEVICE void MultiplyStored(float (&sum)[4], const gpu::Vector& rows, const uint32_t (*x)[2]) {
  using T = gpu_kernels::Multiplied<W>;
  if constexpr (kFoldedParts<W> == 1) {
    MultiplyFolded<T>(sum, rows, x[0]);
  } else {
#pragma unroll
    for (int part = 0; part < kFoldedParts<W>; ++part) {
      gpu::Vector wide;
      gpu_kernels::Widen(rows.word[2 * part], wide.word[0], wide.word[1]);
      gpu_kernels::Widen(rows.word[2 * part + 1], wide.word[2], wide.word[3]);
      MultiplyFolded<T>(sum, wide, x[part]);
    }
  }
}

}  // namespace ashlar::hopper
