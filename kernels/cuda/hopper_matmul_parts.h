// Adds up a tile that lies in several blocks. A place for sums holds kNoPart until they are there,
// so that each word tells by itself that it is, and again once they have been read.
#pragma once

#include "hopper_matmul_units.h"
#include "hopper_products.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

// Some of a tile's groups of eight tokens.
struct Quads {
  int first, end;
  GPU_DEVICE bool Has(int quad) const { return first <= quad && quad < end; }
};

template <class Shape>
class MatmulParts {
 public:
  static constexpr int kTokens = Shape::kTokens, kQuads = kTokens / 8;

  // Of the sums of this thread.
  GPU_DEVICE MatmulParts(const MatmulParams& p, const UnitLine& line, float (&sum)[kTokens / 2])
      : p_(p), line_(line), sum_(sum) {}

  // Hands its sums of a shared tile to those who finish them, and adds theirs to what it finishes,
  // in an order that does not change.
  GPU_DEVICE Quads AddUp(int tile) {
    const int first = line_.Owner(tile * p_.depth);
    const int last = line_.Owner((tile + 1) * p_.depth - 1);
    const Quads quads = OwnQuads(block_ - first);
    float4* const part = PartOf(block_);
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      if (quads.Has(i)) continue;
      StoreFresh(part + i * Shape::kConsumerThreads,
                 make_float4(Told(sum_[4 * i]), Told(sum_[4 * i + 1]), Told(sum_[4 * i + 2]),
                             Told(sum_[4 * i + 3])));
    }
    if (quads.first == quads.end) return quads;
    constexpr int kAtOnce = 8;  // loads on their way: all take as long as one
    if (kQuads > 2) Await(first, last, quads);
    if (kQuads > 2 && p_.shares > 0) {
      AddParts<kAtOnce / 2, 2>(first, last, quads);
    } else {
      AddParts<kAtOnce / kQuads, kQuads>(first, last, quads);
    }
    return quads;
  }

 private:
  // Sums of this block, for this thread.
  GPU_DEVICE float4* PartOf(int block) const {
    return reinterpret_cast<float4*>(p_.parts) + int64_t{block} * kQuads * Shape::kConsumerThreads +
           gpu::ThreadX();
  }

  // What this block finishes of a tile that blocks share: all when it has the first step of k. Of
  // blocks that share every tile alike, and so end together, each finishes some.
  GPU_DEVICE Quads OwnQuads(int share) const {
    if (p_.shares == 0) return {0, share == 0 ? kQuads : 0};
    return {share * kQuads / p_.shares, (share + 1) * kQuads / p_.shares};
  }

  // Returns when the parts are about to be there: all lanes waiting for all words of many would
  // take from those who still multiply.
  GPU_DEVICE void Await(int first, int last, const Quads& quads) const {
    for (int block = first + gpu::ThreadX() % 32; block <= last; block += 32) {
      const float4* const part = PartOf(block) + (quads.end - 1) * Shape::kConsumerThreads;
      while (block != block_ && IsEmpty(LoadFresh(part))) {
      }
    }
    gpu::SyncWave<32>();
  }

  // Parts of kParts blocks, kFew groups of tokens at once.
  template <int kParts, int kFew>
  GPU_DEVICE void AddParts(int first, int last, const Quads& quads) {
#pragma unroll
    for (int quad = 0; quad < kQuads; quad += kFew) {
      if (quad + kFew <= quads.first || quads.end <= quad) continue;
      for (int from = first; from <= last; from += kParts) {
        const auto has = [&](int part, int i) {
          return from + part <= last && from + part != block_ && quads.Has(quad + i);
        };
        const auto place = [&](int part, int i) {
          return PartOf(from + part) + (quad + i) * Shape::kConsumerThreads;
        };
        float4 more[kParts][kFew];
        bool wait = true;
        while (wait) {
          wait = false;
#pragma unroll
          for (int j = 0; j < kParts * kFew; ++j) {
            float4& value = more[j / kFew][j % kFew];
            value = make_float4(0, 0, 0, 0);
            if (has(j / kFew, j % kFew)) value = LoadFresh(place(j / kFew, j % kFew));
          }
#pragma unroll
          for (int j = 0; j < kParts * kFew; ++j) wait |= IsEmpty(more[j / kFew][j % kFew]);
        }
#pragma unroll
        for (int j = 0; j < kParts * kFew; ++j) {
          const float4& value = more[j / kFew][j % kFew];
          float* const sum = sum_ + 4 * (quad + j % kFew);
          sum[0] += value.x, sum[1] += value.y, sum[2] += value.z, sum[3] += value.w;
          if (has(j / kFew, j % kFew)) StoreFresh(place(j / kFew, j % kFew), EmptyPart());
        }
      }
    }
    gpu::SyncWave<32>();
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
  const UnitLine& line_;
  const int block_ = gpu::BlockX();
  float (&sum_)[kTokens / 2];
};

}  // namespace ashlar::hopper

#endif
