// Weights with random shapes and values, for every case that multiplies.
#pragma once

#include "gpu/cases.h"

namespace ashlar::gpu_test {

struct RandomWeight {
  ashlar_weight_desc desc{};
  std::vector<std::vector<uint8_t>> sources;
  int64_t rows = 0;

  // With `halves` the rows are gates and as many ups, in one part or two. With `large` some are as
  // large as a model's.
  static RandomWeight Make(Random& random, bool halves, bool large);
  // A number of tokens that kernels are chosen by, for this weight.
  int64_t Tokens(Random& random, bool large) const;
  // The caller destroys it.
  ashlar_weight* Create(const Side& side) const;

  const char* Name() const;
  // How far a product with x may move when x and, if quantised, the weight are brought to a type of
  // 16 bits, within 2^-9 or 2^-12 of each value: by Cauchy's inequality by Step() * |x| * |row|.
  // Where a float8 weight's x is float8 too, within 2^-4, the bound is one that so many independent
  // errors do not reach, since Cauchy's would hide a wrong scale.
  double Step(bool narrow_x) const;
  // What no row's |row| comes near to: rows are drawn, so that the root of their columns and a few
  // deviations is enough.
  double RowNorm() const;
};

// |x| of `count` values from `first` on.
double VectorNorm(const std::vector<float>& x, int64_t first, int64_t count);

// Whether the side has products, its own or a library's, of float8 weights with float8 x.
bool MayNarrowX(const Side& side);

}  // namespace ashlar::gpu_test
