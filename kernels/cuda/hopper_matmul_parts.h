// Adds up a tile that lies in several blocks. A place for sums holds kNoPart until they are there,
// so that each word tells by itself that it is, and again once they have been read.
#pragma once

#include "hopper_matmul_units.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

// A tile's sums in shared memory. A thread of those that multiply has of every eighth token,
// from that of its warp on, four rows.
template <class Shape>
struct MatmulSums {
  float value[Shape::kTokens][kTileRows + 4];

  GPU_DEVICE float4 Four(int quad) const {
    const int token = 8 * quad + gpu::ThreadX() / 32;
    return *reinterpret_cast<const float4*>(&value[token][gpu::ThreadX() % 32 * 4]);
  }
};

// Of one tile. Tokens are counted in groups of eight, quads.
template <class Shape>
class MatmulParts {
 public:
  // What this block finishes.
  int first_quad, end_quad;

  // All when the tile is this block's alone or it has the first step of k. Of blocks that share
  // every tile alike, and so end together, each finishes some.
  GPU_DEVICE MatmulParts(const MatmulParams& p, const UnitLine& line, int tile)
      : p_(p),
        first_(line.Owner(tile * p.depth)),
        last_(line.Owner((tile + 1) * p.depth - 1)),
        quads_((p.tokens + 7) / 8) {
    const int share = gpu::BlockX() - first_;
    first_quad = p.shares == 0 ? 0 : share * quads_ / p.shares;
    end_quad = p.shares == 0 ? (share == 0 ? quads_ : 0) : (share + 1) * quads_ / p.shares;
  }

  // Gives the others what they finish.
  GPU_DEVICE void HandOut(const MatmulSums<Shape>& sums) const {
#pragma unroll 1
    for (int quad = 0; quad < quads_; ++quad) {
      if (first_quad <= quad && quad < end_quad) continue;
      const float4 four = sums.Four(quad);
      StoreFresh(Place(gpu::BlockX(), quad),
                 make_float4(Told(four.x), Told(four.y), Told(four.z), Told(four.w)));
    }
  }

  // Adds the others' to those of kFew quads, in an order that does not change.
  template <int kFew>
  GPU_DEVICE void Add(int quad, float4 (&value)[kFew]) const {
    constexpr int kBlocks = 8 / kFew;  // eight loads on their way: all take as long as one
#pragma unroll 1
    for (int from = first_; from <= last_; from += kBlocks) {
      const auto has = [&](int block, int i) {
        return block <= last_ && block != gpu::BlockX() && quad + i < end_quad;
      };
      float4 more[kBlocks][kFew];
      bool wait = true;
      while (wait) {
        wait = false;
#pragma unroll
        for (int j = 0; j < kBlocks * kFew; ++j) {
          float4& part = more[j / kFew][j % kFew];
          const int block = from + j / kFew, i = j % kFew;
          part = has(block, i) ? LoadFresh(Place(block, quad + i)) : make_float4(0, 0, 0, 0);
        }
#pragma unroll
        for (int j = 0; j < kBlocks * kFew; ++j) wait |= IsEmpty(more[j / kFew][j % kFew]);
      }
#pragma unroll
      for (int j = 0; j < kBlocks * kFew; ++j) {
        const float4& part = more[j / kFew][j % kFew];
        const int block = from + j / kFew, i = j % kFew;
        value[i].x += part.x, value[i].y += part.y;
        value[i].z += part.z, value[i].w += part.w;
        if (has(block, i)) StoreFresh(Place(block, quad + i), EmptyPart());
      }
    }
  }

 private:
  GPU_DEVICE float4* Place(int block, int quad) const {
    return reinterpret_cast<float4*>(p_.parts) +
           (block * (Shape::kTokens / 8) + quad) * Shape::kConsumerThreads + gpu::ThreadX();
  }

  // A sum that is no number may have any bits.
  GPU_DEVICE static float Told(float sum) { return __float_as_uint(sum) == kNoPart ? NAN : sum; }
  GPU_DEVICE static float4 EmptyPart() {
    const float empty = __uint_as_float(kNoPart);
    return make_float4(empty, empty, empty, empty);
  }
  GPU_DEVICE static bool IsEmpty(const float4& part) {
    const auto is = [](float value) { return __float_as_uint(value) == kNoPart; };
    return is(part.x) || is(part.y) || is(part.z) || is(part.w);
  }

  const MatmulParams& p_;
  const int first_, last_;  // blocks that share the tile
  const int quads_;         // that have tokens
};

}  // namespace ashlar::hopper

#endif
