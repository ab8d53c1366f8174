// Tile registers: eight matrices of up to 16 rows of 64 bytes, private to a thread, and products of
// two of them added to a third. A level that has them names their header in ASHLAR_CPU_TILES:
// tiles_amx.h is the hardware's, tiles_emulated.h means the same in plain C++, so that tests run
// the kernels on any CPU.
//
// An operand of a product holds x by rows, the other holds, in row j and at 4n, the four bytes (the
// two bf16) of its column n that belong to columns 4j.. (2j..) of x.
//
//   TileScope scope(config)        gives this thread's registers their shapes; its end frees them
//   TileZero<t>()
//   TileLoad<t>(from, stride)      rows `stride` bytes apart; what a row leaves free becomes zero
//   TileStore<t>(to, stride)
//   TileDotBytes<sum, a, b>()      int32 sums of signed bytes of a times unsigned bytes of b
//   TileDotBf16<sum, a, b>()       f32 sums of bf16 products: those of even and of odd columns of a
//                                  apart, each fused, then both to `sum`; subnormals count as zero
#pragma once

#include "simd.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

inline constexpr int kTileRegisters = 8;
inline constexpr int kTileBytes = 64;  // of a row, at most

// As the instruction reads it.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr void Set(int tile, int tile_rows, int tile_row_bytes) {
    rows[tile] = (uint8_t)tile_rows;
    row_bytes[tile] = (uint16_t)tile_row_bytes;
  }
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL

#include ASHLAR_CPU_TILES
