// Which block has which units of work: see hopper_matmul.h.
#pragma once

#include "hopper.h"
#include "hopper_matmul.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

// The line of units, a step of a tile each, and which block has which.
class UnitLine {
 public:
  GPU_DEVICE explicit UnitLine(const MatmulParams& p)
      : line_(p.line), end_(p.tiles * p.depth), blocks_(gpu::GridX()) {}
  GPU_DEVICE int First(int block) const {
    return static_cast<int>(min(block * line_ / blocks_, end_));
  }
  GPU_DEVICE int Owner(int unit) const {
    return static_cast<int>(((unit + 1) * blocks_ - 1) / line_);
  }

 private:
  uint32_t line_, end_, blocks_;  // products of line and blocks fit too
};

// Where a unit lies.
struct UnitPlace {
  int tile, step, depth;
  GPU_DEVICE UnitPlace(int unit, int all) : tile(unit / all), step(unit % all), depth(all) {}
  GPU_DEVICE void Next() {
    if (++step == depth) step = 0, ++tile;
  }
};

}  // namespace ashlar::hopper

#endif
