// The inner loops as one table of functions per level (instruction set). Plain pointers and sizes:
// shapes were checked by the caller, each call runs on one thread and allocates nothing.
//
// Every function gives a row of x the same bits whatever other rows stand beside it;
// matmul_bf16_tiles gives others than matmul_bf16_dot.
#pragma once

#include <stdint.h>

#include "ashlar_plugin.h"
#include "quant_format.h"

namespace ashlar::cpu {

// Activations for a quantised matmul, [m, k]: 8-bit codes with one scale per 32 columns.
struct QuantRows {
  const int8_t* codes;      // [m, k]
  const float* scale;       // [m, k / 32]
  const float* scaled_sum;  // [m, k / 32] scale * sum of the codes
  const int32_t* half_sum;  // [m, k / 16] sum of the codes of 16 columns
  int64_t m, k;
};

struct QuantMatmul {
  const uint8_t* tiles;
  int64_t tile_bytes, codes_offset;  // of one tile; its scales come first
  int64_t tile_begin, tile_end;
  int64_t rows;  // of the weight: the last tile may have fewer than 16
  QuantRows x;
  // What a format with an offset begins each sum with: -offset times the sum of the codes, by
  // blocks [m, k / 32], Q6_K by half blocks [m, k / 16]. Unused by the others.
  const int32_t* start;
  float* out;  // [m, rows]
  int64_t out_stride;
  const float* bias;  // [rows] or null
};

struct FloatMatmul {
  const char* weight;     // [rows, k]
  int64_t weight_stride;  // bytes
  int64_t row_begin, row_end;
  // f32 [m, k]; for matmul_bf16_dot bf16, padded with zeros to a multiple of 32; for
  // matmul_bf16_tiles those rows as tile_bf16_rows leaves them.
  const void* x;
  int64_t x_stride;  // elements, of a row
  int64_t m, k;
  float* out;  // [m, rows]
  int64_t out_stride;
  const float* bias;  // [rows] or null
};

inline constexpr int kAttentionRows = 32;  // query rows that one call takes at most
inline constexpr int kAttentionKeys = 32;  // keys handled together, at absolute multiples of it

// Keys [key_begin, key_end) of one sequence and KV head against up to kAttentionRows query rows.
// key_begin is a multiple of kAttentionKeys.
struct AttentionPart {
  const float* q;        // [rows, head_dim], scaled
  const int32_t* first;  // [rows] first visible key
  const int32_t* last;   // [rows] one past the last
  int rows;
  int32_t key_begin, key_end;
  int32_t lowest, highest;  // keys outside [lowest, highest) are visible to no row and not read
  const char* base;         // of this head's slot in block 0
  int64_t block_stride, token_stride;
  const int32_t* block_table;
  int32_t block_tokens;
  ashlar_dtype dtype;
  int head_dim, head_dim_v;  // multiples of 16
  // Result: maximum, sum of exponentials and unnormalised output.
  float* peak;     // [rows]
  float* sum;      // [rows]
  float* out;      // [rows, head_dim_v]
  float* scratch;  // AttentionScratch() floats
};
constexpr int64_t AttentionScratch(int64_t head_dim, int64_t head_dim_v) {
  return kAttentionKeys * (head_dim + head_dim_v + kAttentionRows);
}

struct KernelTable {
  const char* name;
  int q8_offset;  // Q8_0 codes are packed as value + q8_offset

  // k is a multiple of 32.
  void (*quantize_row)(const float* x, int64_t k, int8_t* codes, float* scale, float* scaled_sum,
                       int32_t* half_sum);
  void (*matmul_quant[kQuantFormatCount])(const QuantMatmul& args);
  void (*matmul_f32)(const FloatMatmul& args);
  void (*matmul_f16)(const FloatMatmul& args);
  void (*matmul_bf16)(const FloatMatmul& args);
  // Null at a level that lacks them.
  void (*matmul_bf16_dot)(const FloatMatmul& args) = nullptr;
  void (*matmul_bf16_tiles)(const FloatMatmul& args) = nullptr;
  // 16 rows of x for matmul_bf16_tiles, of which `rows` exist: x_stride a multiple of 32, 16 times
  // as many values to `tiles`.
  void (*tile_bf16_rows)(uint16_t* tiles, const uint16_t* x, int64_t x_stride,
                         int64_t rows) = nullptr;

  void (*rms_norm_row)(float* out, const float* x, const float* weight, int64_t n, float eps);
  void (*add_row)(float* sum, const float* x, int64_t n);
  void (*silu_row)(float* out, const float* gate, const float* up, int64_t n);
  void (*gelu_tanh_row)(float* out, const float* gate, const float* up, int64_t n);
  // Rotates pairs (i, i + half), i < half, or (2i, 2i + 1), in place.
  void (*rope_half)(float* x, const float* cosine, const float* sine, int64_t half);
  void (*rope_interleaved)(float* x, const float* cosine, const float* sine, int64_t half);
  void (*scale_row)(float* out, const float* x, float scale, int64_t n);
  // f32 from or to F32, F16 or BF16; n any.
  void (*from_floats)(void* to, ashlar_dtype dtype, const float* from, int64_t n);
  void (*to_floats)(float* to, const void* from, ashlar_dtype dtype, int64_t n);

  void (*attend)(const AttentionPart& args);
};

}  // namespace ashlar::cpu
