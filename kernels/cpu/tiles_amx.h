// The tiles of tiles.h as AMX has them. In assembly, because GCC 12's intrinsics do not tell the
// compiler that they read and write memory.
#pragma once

namespace ashlar::cpu::ASHLAR_CPU_LEVEL {

class TileScope {
 public:
  explicit TileScope(const TileConfig& config) {
    __asm__ volatile("ldtilecfg %0" ::"m"(config) : "memory");
  }
  ~TileScope() { __asm__ volatile("tilerelease"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

template <int kTile>
ASHLAR_INLINE void TileZero() {
  __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
ASHLAR_INLINE void TileLoad(const void* from, int64_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
ASHLAR_INLINE void TileStore(void* to, int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
}
template <int kSum, int kA, int kB>
ASHLAR_INLINE void TileDotBytes() {
  __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}
template <int kSum, int kA, int kB>
ASHLAR_INLINE void TileDotBf16() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
}

}  // namespace ashlar::cpu::ASHLAR_CPU_LEVEL
