// Shared memory of a block of the Hopper attention kernel: stages of tiles that the producer fills
// and the consumers empty, in rings.
#pragma once

#include "hopper_work.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

template <int kHeadDim>
struct SharedTiles {
  using Shape = AttentionShape<kHeadDim>;
  alignas(1024) char q[Shape::kQueryStages][Shape::kQueryBytes];
  alignas(1024) char k[Shape::kStages][Shape::kTileBytes];
  alignas(1024) char v[Shape::kStages][Shape::kTileBytes];
  // full: the copy engine has written; empty: the consumers have read.
  Barrier q_full[Shape::kQueryStages], q_empty[Shape::kQueryStages];
  Barrier k_full[Shape::kStages], k_empty[Shape::kStages];
  Barrier v_full[Shape::kStages], v_empty[Shape::kStages];
  Barrier landed;  // V of a tile that the producer completes
  Tile tile[Shape::kQueryStages];
  bool more[Shape::kQueryStages];

  GPU_DEVICE void Init() {
    constexpr int kWarps = 4 * Shape::kConsumers;
    for (int i = 0; i < Shape::kQueryStages; ++i) {
      InitBarrier(&q_full[i], 1);
      InitBarrier(&q_empty[i], 32 * kWarps);  // all threads: each has read `tile`
    }
    for (int i = 0; i < Shape::kStages; ++i) {
      InitBarrier(&k_full[i], 1);
      InitBarrier(&v_full[i], 1);
      InitBarrier(&k_empty[i], kWarps);
      InitBarrier(&v_empty[i], kWarps);
    }
    InitBarrier(&landed, 1);
    FenceBarriers();
  }
};

// A place in a ring of stages.
template <int kStages>
struct Ring {
  int stage = 0, parity = 0;
  GPU_DEVICE void Next() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

}  // namespace ashlar::hopper

#endif
