// The tiles of tiles.h in plain C++, faults included: where the hardware would raise one, this
// aborts.
#pragma once

#include <stdlib.h>

#include "half.h"

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

struct TileState {
  TileConfig config{.palette = 0};
  uint8_t bytes[kTileRegisters][16][kTileBytes];
};
static thread_local TileState tile_state;

class TileScope {
 public:
  explicit TileScope(const TileConfig& config) {
    bool usable = config.palette == 1 && config.start_row == 0;
    for (int t = 0; t < 16; ++t)
      usable = usable && config.rows[t] <= 16 && config.row_bytes[t] <= kTileBytes &&
               (t < kTileRegisters || config.rows[t] + config.row_bytes[t] == 0);
    if (!usable) abort();
    tile_state.config = config;
    memset(tile_state.bytes, 0, sizeof tile_state.bytes);
  }
  ~TileScope() { tile_state.config.palette = 0; }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

struct TileSize {
  int rows, row_bytes;
};
static inline TileSize SizeOf(int tile) {
  const TileConfig& config = tile_state.config;
  if (config.palette != 1 || config.rows[tile] == 0) abort();
  return {config.rows[tile], config.row_bytes[tile]};
}

template <int kTile>
ASHLAR_INLINE void TileZero() {
  SizeOf(kTile);
  memset(tile_state.bytes[kTile], 0, sizeof tile_state.bytes[kTile]);
}
template <int kTile>
ASHLAR_INLINE void TileLoad(const void* from, int64_t stride) {
  const TileSize size = SizeOf(kTile);
  TileZero<kTile>();
  for (int r = 0; r < size.rows; ++r)
    memcpy(tile_state.bytes[kTile][r], (const char*)from + r * stride, size.row_bytes);
}
template <int kTile>
ASHLAR_INLINE void TileStore(void* to, int64_t stride) {
  const TileSize size = SizeOf(kTile);
  for (int r = 0; r < size.rows; ++r)
    memcpy((char*)to + r * stride, tile_state.bytes[kTile][r], size.row_bytes);
}

// Calls dot(row of a, column of b, steps, element of the sum) for every element.
template <class Dot>
static inline void ForSums(int sum, int a, int b, Dot dot) {
  const TileSize s = SizeOf(sum), x = SizeOf(a), w = SizeOf(b);
  if (sum == a || sum == b || a == b || s.rows != x.rows || s.row_bytes != w.row_bytes ||
      x.row_bytes != 4 * w.rows)
    abort();
  for (int m = 0; m < s.rows; ++m)
    for (int n = 0; n < s.row_bytes / 4; ++n)
      dot(tile_state.bytes[a][m], &tile_state.bytes[b][0][4 * n], w.rows,
          &tile_state.bytes[sum][m][4 * n]);
}

template <int kSum, int kA, int kB>
ASHLAR_INLINE void TileDotBytes() {
  ForSums(kSum, kA, kB, [](const uint8_t* x, const uint8_t* w, int steps, uint8_t* sum) {
    int32_t total;
    memcpy(&total, sum, 4);
    for (int j = 0; j < steps; ++j)
      for (int i = 0; i < 4; ++i) total += (int8_t)x[4 * j + i] * w[kTileBytes * j + i];
    memcpy(sum, &total, 4);
  });
}

// The arithmetic of bf16 products: subnormal numbers count as zero, before and after.
static inline float Flushed(float x) {
  return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x;
}
static inline float Bf16At(const uint8_t* p) {
  uint16_t bits;
  memcpy(&bits, p, 2);
  return Flushed(FloatFromBf16(bits));
}

template <int kSum, int kA, int kB>
ASHLAR_INLINE void TileDotBf16() {
  ForSums(kSum, kA, kB, [](const uint8_t* x, const uint8_t* w, int steps, uint8_t* sum) {
    float total, even = 0, odd = 0;
    memcpy(&total, sum, 4);
    for (int j = 0; j < steps; ++j) {
      const uint8_t* column = w + kTileBytes * j;
      even = Flushed(__builtin_fmaf(Bf16At(x + 4 * j), Bf16At(column), even));
      odd = Flushed(__builtin_fmaf(Bf16At(x + 4 * j + 2), Bf16At(column + 2), odd));
    }
    total = Flushed(Flushed(total) + Flushed(even + odd));
    memcpy(sum, &total, 4);
  });
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
