// How a block-quantised weight lies in memory once packed: 16 rows (a tile) side by side, so that
// one register holds four consecutive values of each of the 16.
//
// A tile is its scales, then its codes, so that reading on fetches both. Codes, for every 32
// columns (a block), 64-byte vectors in which byte 4*r + i belongs to row r:
//   8 bits: 8 vectors; vector j holds columns 4j..4j+3.
//   4 bits: 4 vectors; vector j holds columns 4j.. in the low nibbles and 16 + 4j.. in the high.
//   5 bits: 4 bits, then 1 vector whose bit j is bit 4 of the code in column 4j + i.
//   6 bits: 4 bits, then 2 vectors; bits 2j, 2j+1 of vector v are bits 4, 5 of column 16v + 4j + i.
// Scales, for every group of blocks:
//   group of 1: d f16 [16], and with minima m f16 [16].       value = d * (code - offset) + m
//   group of 8 with minima: d f16 [16], dmin f16 [16], then for each block scale u8 [16], minimum
//     u8 [16].                                                value = d * scale * code - dmin * min
//   group of 8 without: d f16 [16], then for each half block scale i8 [16].
//                                                             value = d * scale * (code - offset)
#pragma once

#include <stdint.h>

#include "ashlar_plugin.h"

namespace ashlar::cpu {

inline constexpr int kTileRows = 16;
inline constexpr int kBlockColumns = 32;

struct QuantFormat {
  ashlar_dtype dtype;
  int source_columns;  // values in one source block
  int source_bytes;
  int code_bits;
  int group_blocks;  // blocks of 32 columns that share d
  bool minimum;
  int offset;

  // Of 16 rows and 32 columns.
  constexpr int block_code_bytes() const { return 64 * code_bits; }
  constexpr int group_scale_bytes() const {
    if (group_blocks == 1) return minimum ? 64 : 32;
    return minimum ? 64 + 8 * 32 : 32 + 16 * 16;
  }
};

inline constexpr QuantFormat kQuantFormats[] = {
    {ASHLAR_Q8_0, 32, 34, 8, 1, false, 0},  {ASHLAR_Q4_0, 32, 18, 4, 1, false, 8},
    {ASHLAR_Q4_1, 32, 20, 4, 1, true, 0},   {ASHLAR_Q5_0, 32, 22, 5, 1, false, 16},
    {ASHLAR_Q5_1, 32, 24, 5, 1, true, 0},   {ASHLAR_Q4_K, 256, 144, 4, 8, true, 0},
    {ASHLAR_Q5_K, 256, 176, 5, 8, true, 0}, {ASHLAR_Q6_K, 256, 210, 6, 8, false, 32},
};
inline constexpr int kQuantFormatCount = sizeof kQuantFormats / sizeof kQuantFormats[0];

// Index in kQuantFormats, or -1: not block-quantised.
constexpr int QuantIndex(ashlar_dtype dtype) {
  for (int i = 0; i < kQuantFormatCount; ++i)
    if (kQuantFormats[i].dtype == dtype) return i;
  return -1;
}

}  // namespace ashlar::cpu
