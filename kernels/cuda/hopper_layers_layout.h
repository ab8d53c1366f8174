// How the blocks of a launch of whole layers (gpu/layers.h) share its products, and where in a
// block's shared memory its part of them lies.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu/number.h"
#include "hopper_words.h"

namespace ashlar::hopper {

inline constexpr int kProductThreads = 256, kProductWaves = 8;
inline constexpr int kStripRows = 8;     // of the weight, that a wave multiplies at a time
inline constexpr int kSliceBytes = 256;  // of one row; memory is read in long pieces
inline constexpr int kSliceVectors = kSliceBytes / 16;
inline constexpr int kStageBytes = kStripRows * kSliceBytes;  // a slice of a strip
inline constexpr int kMostStages = 16;                        // of a wave's ring
inline constexpr int kLeastStages = 4;                        // as many are multiplied at once

// Of weights that are stored as W.
template <class W>
inline constexpr int kSliceValues = kSliceBytes / int{sizeof(W)};
inline constexpr int kPassValues = 512;  // whose x a wave keeps in registers at a time
inline constexpr int kNormValues = 128;  // whose norm's weights lie in shared memory, in two turns
template <class W>
inline constexpr int kPassSlices = kPassValues / kSliceValues<W>;

// Of one product. A strip of gates is one of out, and so is that of the ups beside it.
struct ProductShare {
  int each = 0, more = 0;  // strips of out of a block; blocks, the first, that have one more
  int slices = 0;          // of k; wave w takes w, w + 8..
  int group = 0;           // strips of out that are added up at a time
};

// Parts of a block's shared memory, in bytes from its begin.
struct ProductsLayout {
  ProductShare share[gpu_kernels::kLayerProducts];
  int stages = 0;      // of each wave's ring; 0 when there is no room
  int sum_pitch = 0;   // floats between waves of the sums; those of all waves are there twice
  int token_bits = 0;  // thread >> token_bits is the token of which it finishes pairs
  int norm_bytes = 0;  // of a wave
  int norms = 0, sums = 0, squares = 0, all = 0;
  WordPlaces words;
};

// Why the products of such layers are not carried out, or NULL.
inline const char* RefusesProducts(const gpu_kernels::LayersParams& p) {
  using namespace gpu_kernels;
  if (p.tokens < 1 || p.tokens > kMostLayerTokens) return "a step has 1 to 4 tokens";
  if (p.layers < 1 || p.layers > kMostLayers) return "there are 1 to 80 layers";
  for (int i = 0; i < kLayerProducts; ++i) {
    const ProductShape& shape = p.product[i];
    const int rows = i == kGateUp ? 2 * kStripRows : kStripRows;
    if (shape.rows < rows || shape.rows % rows != 0) return "rows of out come in eights";
    if (shape.cols < 64 || shape.cols % 64 != 0) return "columns come in sixty-fours";
    if (shape.pitch < shape.cols || shape.pitch * ElementBytes(p.weights) % 64 != 0) {
      return "rows of the weight are of whole 64 bytes";
    }
  }
  const ProductShape* product = p.product;
  if (product[kOutput].rows != product[kQkv].cols || product[kDown].rows != product[kQkv].cols ||
      product[kGateUp].cols != product[kQkv].cols) {
    return "what is added to the hidden states is as wide as they are";
  }
  if (PlaceWords(p).all > kMostWords) return "a step's values have room among the words";
  return nullptr;
}

// Of a launch of so many blocks, which keep `room` bytes of shared memory for the products. The
// ring takes what the rest leaves.
inline ProductsLayout LayOutProducts(const gpu_kernels::LayersParams& p, int blocks, int64_t room) {
  using namespace gpu_kernels;
  constexpr int kMostSumBytes = 16 << 10;  // of each of two
  const auto up = [](int64_t value, int64_t step) {
    return static_cast<int>((value + step - 1) / step);
  };
  const int value_bytes = ElementBytes(p.weights), slice_values = kSliceBytes / value_bytes;
  const int token_bytes = kProductWaves * p.tokens * kStripRows * int{sizeof(float)};
  ProductsLayout l;
  int strips = 0;  // of the weight, in the largest group
  for (int i = 0; i < kLayerProducts; ++i) {
    const ProductShape& shape = p.product[i];
    const int matrices = i == kGateUp ? 2 : 1, all = shape.rows / matrices / kStripRows;
    ProductShare& share = l.share[i];
    share.each = all / blocks;
    share.more = all % blocks;
    share.slices = up(shape.pitch, slice_values);
    const int most = share.each + (share.more > 0 ? 1 : 0);
    const int groups = up(int64_t{most} * matrices * token_bytes, kMostSumBytes);
    share.group = up(most, groups);
    strips = std::max(strips, share.group * matrices);
  }
  l.sum_pitch = strips * p.tokens * kStripRows;
  l.token_bits = 8;
  while (kProductThreads >> l.token_bits < p.tokens) --l.token_bits;
  l.words = PlaceWords(p);
  const int slices = std::max(l.share[kQkv].slices, l.share[kGateUp].slices);
  const int normed = std::min(up(slices, kProductWaves) * slice_values, 2 * kNormValues);
  l.norm_bytes = normed * int{sizeof(float)};
  const int norms = kProductWaves * l.norm_bytes;
  const int sums = 2 * kProductWaves * l.sum_pitch * int{sizeof(float)};
  const int squares = 2 * kProductWaves * kMostLayerTokens * int{sizeof(float)};
  const int64_t ring = room - norms - sums - squares;
  const int64_t stages = ring < 0 ? 0 : ring / (kProductWaves * kStageBytes);
  l.stages = static_cast<int>(std::min<int64_t>(stages, kMostStages));
  if (l.stages < kLeastStages) l.stages = 0;
  l.norms = kProductWaves * l.stages * kStageBytes;
  l.sums = l.norms + norms;
  l.squares = l.sums + sums;
  l.all = l.squares + squares;
  return l;
}

}  // namespace ashlar::hopper
