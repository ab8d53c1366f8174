// A paged cache as the cases of attention build it.
#pragma once

#include "gpu/cases.h"
#include "gpu/number.h"

namespace ashlar::gpu_test {

// An arena of three layers; layer 1 is the one in use.
struct Cache {
  ashlar_kv_view view{};
  int64_t bytes = 0, layer_offset = 0;
};

inline Cache MakeCache(Random& random, ashlar_dtype dtype, int blocks, int block_tokens,
                       int kv_heads, int head_dim) {
  constexpr int kLayers = 3;
  const int64_t entry = 2 * head_dim * gpu_kernels::ElementBytes(dtype);
  // Extents from the innermost outwards in one of four orders.
  const int order = static_cast<int>(random.Int(0, 3));
  int64_t layer = 0;
  Cache cache;
  ashlar_kv_view& kv = cache.view;
  if (order == 0) {  // L B H N
    kv.token_stride = entry, kv.head_stride = entry * block_tokens;
    kv.block_stride = kv.head_stride * kv_heads, layer = kv.block_stride * blocks;
  } else if (order == 1) {  // L B N H
    kv.head_stride = entry, kv.token_stride = entry * kv_heads;
    kv.block_stride = kv.token_stride * block_tokens, layer = kv.block_stride * blocks;
  } else if (order == 2) {  // B L N H
    kv.head_stride = entry, kv.token_stride = entry * kv_heads;
    layer = kv.token_stride * block_tokens, kv.block_stride = layer * kLayers;
  } else {  // B H L N
    kv.token_stride = entry, layer = entry * block_tokens;
    kv.head_stride = layer * kLayers, kv.block_stride = kv.head_stride * kv_heads;
  }
  kv.blocks = blocks;
  kv.dtype = dtype;
  kv.block_tokens = block_tokens;
  kv.kv_heads = kv_heads;
  kv.head_dim = kv.head_dim_v = head_dim;
  // An arena that begins anywhere makes kernels copy by elements.
  const int64_t shift = random.Chance(0.1) ? gpu_kernels::ElementBytes(dtype) : 0;
  cache.layer_offset = layer + shift;
  cache.bytes = entry * blocks * block_tokens * kv_heads * kLayers + shift;
  return cache;
}

inline int64_t EntryAt(const Cache& cache, int64_t block, int64_t head, int64_t token) {
  return cache.layer_offset + block * cache.view.block_stride + head * cache.view.head_stride +
         token * cache.view.token_stride;
}

// The distance of neighbouring values of a type as a share of them, and what it is called.
inline double StepOf(ashlar_dtype dtype) {
  return dtype == ASHLAR_F16 ? 0x1p-10 : dtype == ASHLAR_BF16 ? 0x1p-7 : 0x1p-3;
}
inline const char* NameOf(ashlar_dtype dtype) {
  return dtype == ASHLAR_F16 ? " f16" : dtype == ASHLAR_BF16 ? " bf16" : " f8";
}

inline int RowNamed(const Side& side, const char* suffix) {
  for (int row = 0; row < side.table().row_count; ++row) {
    const std::string name = side.table().rows[row].name;
    if (name == "REFERENCE" || name.ends_with(suffix)) return row;
  }
  std::fprintf(stderr, "conformance: %s has no row %s\n", side.table().name, suffix);
  std::exit(1);
}

}  // namespace ashlar::gpu_test
