// A warpgroup that computes 64 rows of each tile. Two products are in flight: the scores of the
// next keys and the weighted values of the last; between them scores become weights. Consumers take
// turns in starting products, so that one weighs while the tensor cores work for another.
#pragma once

#include <climits>
#include <cmath>

#include "hopper_products.h"
#include "hopper_shared.h"

#if defined(ASHLAR_HOPPER)

namespace ashlar::hopper {

template <class T, int kHeadDim>
class Consumer {
 public:
  using Shape = AttentionShape<kHeadDim>;
  static constexpr int kKeys = Shape::kKeys;
  static constexpr bool kTurns = !Shape::kWide;

  GPU_DEVICE Consumer(SharedTiles<kHeadDim>& shared, const AttentionParams& params)
      : s_(shared), p_(params) {}

  GPU_DEVICE void Run() {
    if (kTurns && warpgroup_ == Shape::kConsumers - 1) PassTurn();
    for (;;) {
      Wait(&s_.q_full[q_.stage], q_.parity);
      if (!s_.more[q_.stage]) break;
      const Tile tile = s_.tile[q_.stage];
      Begin(tile);
      Walk(tile);
      tile.parts > 1 ? Keep(tile) : Finish(tile);
    }
    if (kTurns && warpgroup_ == 0) AwaitTurn();
  }

 private:
  GPU_DEVICE int Row(int slot) const { return warpgroup_ * 64 + warp_ * 16 + lane_ / 4 + 8 * slot; }

  // Barriers 1.. belong to the consumers; 0 is SyncBlock's.
  GPU_DEVICE void AwaitTurn() {
    if (kTurns) SyncNamed(1 + warpgroup_, 256);
  }
  GPU_DEVICE void PassTurn() {
    if (kTurns) ArriveNamed(1 + (warpgroup_ + 1) % Shape::kConsumers, 256);
  }

  GPU_DEVICE void Begin(const Tile& tile) {
#pragma unroll
    for (int slot = 0; slot < 2; ++slot) {
      // Rows past the tile's end count as its last token; nothing is stored for them.
      newest_[slot] = tile.position + min(Row(slot) / p_.group, tile.tokens - 1);
      top_[slot] = -INFINITY;
      weight_[slot] = 0;
    }
#pragma unroll
    for (int i = 0; i < kHeadDim / 2; ++i) sum_[i] = 0;
  }

  GPU_DEVICE void Walk(const Tile& tile) {
    const char* q = s_.q[q_.stage] + warpgroup_ * 64 * 128;
    int at = tile.last;
    Wait(&s_.k_full[k_.stage], k_.parity);
    StartScores(q);
    WaitProducts<0>();
    Pin(scores_);
    Release(&s_.k_empty[k_.stage]), k_.Next();
    Mask(at);
    Weigh();
    PackWeights();
    // Keys that all rows see need no mask.
    const int plain = (tile.position + 1) / kKeys;  // tiles before this one lie below the diagonal
    const int window_end = p_.window > 0 ? tile.position + tile.tokens - p_.window : 0;
    const int whole = p_.window > 0 ? max(0, (window_end + kKeys - 1) / kKeys) : 0;
    for (--at; at >= max(plain, tile.first); --at) Step<true>(q, at);
    for (; at >= max(whole, tile.first); --at) Step<false>(q, at);
    for (; at >= tile.first; --at) Step<true>(q, at);
    Arrive(&s_.q_empty[q_.stage]), q_.Next();
    Wait(&s_.v_full[v_.stage], v_.parity);
    StartValues();
    WaitProducts<0>();
    Pin(sum_);
    Release(&s_.v_empty[v_.stage]), v_.Next();
  }

  // Scores of the keys at `at`, and the sum with the weights of the keys after them.
  template <bool kMasked>
  GPU_DEVICE void Step(const char* q, int at) {
    Wait(&s_.k_full[k_.stage], k_.parity);
    AwaitTurn();
    StartScores(q);
    Wait(&s_.v_full[v_.stage], v_.parity);
    StartValues();
    PassTurn();
    WaitProducts<1>();
    Pin(scores_);
    Release(&s_.k_empty[k_.stage]), k_.Next();
    if (kMasked) Mask(at);
    const bool shrinks = Weigh();
    WaitProducts<0>();
    Pin(sum_);
    Release(&s_.v_empty[v_.stage]), v_.Next();
    PackWeights();
    if (shrinks) {
#pragma unroll
      for (int i = 0; i < kHeadDim / 2; ++i) sum_[i] *= shrink_[i / 2 % 2];
    }
  }

  GPU_DEVICE void StartScores(const char* q) {
    constexpr int kGroup = 1024 * Shape::kHalves;
    const uint64_t a = Operand(q, 1024, 0), b = Operand(s_.k[k_.stage], kGroup, 0);
    Pin(scores_);
    hopper::Begin();
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; ++i) {
      Product<kKeys>::template Shared<T>(scores_,
                                         Advance(a, i / 4 * Shape::kRows * 128 + i % 4 * 32),
                                         Advance(b, i / 4 * 1024 + i % 4 * 32), i > 0);
    }
    Commit();
  }

  GPU_DEVICE void StartValues() {
    constexpr int kGroup = 1024 * Shape::kHalves;
    const uint64_t b = Operand(s_.v[v_.stage], kGroup, 1024);
    Pin(sum_);
    hopper::Begin();
#pragma unroll
    for (int i = 0; i < kKeys / 16; ++i) {
      Product<kHeadDim>::template Registers<T>(sum_, packed_ + 4 * i, Advance(b, i * 2 * kGroup));
    }
    Commit();
  }

  GPU_DEVICE void Release(Barrier* empty) {
    if (lane_ == 0) Arrive(empty);
  }

  GPU_DEVICE void Mask(int at) {
    const int column = at * kKeys + 2 * (lane_ % 4);
#pragma unroll
    for (int slot = 0; slot < 2; ++slot) {
      const int newest = newest_[slot] - column;
      const int oldest = p_.window > 0 ? newest - p_.window : INT_MIN;
#pragma unroll
      for (int i = 0; i < kKeys / 2; ++i) {
        const int key = i / 4 * 8 + i % 2;
        if (i / 2 % 2 == slot && (key > newest || key <= oldest)) scores_[i] = -INFINITY;
      }
    }
  }

  // Turns scores into weights relative to `top_`, the largest score so far or one near it: what was
  // summed need not shrink as long as weights stay below 2^kRise. True when it must, by shrink_.
  GPU_DEVICE bool Weigh() {
    constexpr float kRise = 8;
    float largest[2];
    bool rises = false;
#pragma unroll
    for (int slot = 0; slot < 2; ++slot) {
      float value = top_[slot];
#pragma unroll
      for (int i = 0; i < kKeys / 2; ++i) {
        if (i / 2 % 2 == slot) value = fmaxf(value, scores_[i]);
      }
      value = fmaxf(value, __shfl_xor_sync(~0u, value, 1));
      largest[slot] = fmaxf(value, __shfl_xor_sync(~0u, value, 2));
      rises |= (largest[slot] - top_[slot]) * p_.scale_log2 > kRise;
    }
    rises = __any_sync(~0u, rises);
    if (rises) {
#pragma unroll
      for (int slot = 0; slot < 2; ++slot) {
        const float base = largest[slot] == -INFINITY ? 0 : largest[slot];
        shrink_[slot] = gpu::Exp2((top_[slot] - base) * p_.scale_log2);
        weight_[slot] *= shrink_[slot];
        top_[slot] = largest[slot];
      }
    }
#pragma unroll
    for (int slot = 0; slot < 2; ++slot) {
      // A row that has seen no key yet has weights of 2^-inf.
      const float base = top_[slot] == -INFINITY ? 0 : top_[slot] * p_.scale_log2;
#pragma unroll
      for (int i = 0; i < kKeys / 2; ++i) {
        if (i / 2 % 2 != slot) continue;
        scores_[i] = gpu::Exp2(fmaf(scores_[i], p_.scale_log2, -base));
        weight_[slot] += scores_[i];
      }
    }
    return rises;
  }

  GPU_DEVICE void PackWeights() {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      packed_[i] = Pack<T>(scores_[2 * i], scores_[2 * i + 1]);
    }
  }

  // The four lanes of a row exchange their words so that each stores 16 bytes at once.
  GPU_DEVICE void Finish(const Tile& tile) {
#pragma unroll
    for (int slot = 0; slot < 2; ++slot) {
      float total = weight_[slot];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
      const float inverse = 1 / total;
      const int row = Row(slot), token = row / p_.group;
      char* const out = p_.out + (tile.token + token) * p_.out_row_bytes +
                        (tile.kv_head * p_.group + row - token * p_.group) * (kHeadDim * 2);
#pragma unroll
      for (int i = 0; i < kHeadDim / 32; ++i) {
        uint32_t word[4];  // of 8 columns each
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const float* pair = sum_ + 4 * (4 * i + w) + 2 * slot;
          word[w] = Pack<T>(pair[0] * inverse, pair[1] * inverse);
        }
        Transpose(word);
        if (token < tile.tokens) {
          *reinterpret_cast<uint4*>(out + (4 * i + lane_ % 4) * 16) =
              make_uint4(word[0], word[1], word[2], word[3]);
        }
      }
    }
  }

  // What the tile's parts are added up from.
  GPU_DEVICE void Keep(const Tile& tile) {
#pragma unroll
    for (int slot = 0; slot < 2; ++slot) {
      float total = weight_[slot];
      total += __shfl_xor_sync(~0u, total, 1);
      total += __shfl_xor_sync(~0u, total, 2);
      const int row = Row(slot), token = row / p_.group;
      if (token >= tile.tokens) continue;
      const int head = tile.kv_head * p_.group + row - token * p_.group;
      float* const to = PartOf(p_, tile.part, tile.token + token, head, kHeadDim);
#pragma unroll
      for (int i = 0; i < kHeadDim / 8; ++i) {
        const float* pair = sum_ + 4 * i + 2 * slot;
        *reinterpret_cast<float2*>(to + 8 * i + 2 * (lane_ % 4)) = make_float2(pair[0], pair[1]);
      }
      if (lane_ % 4 == 0) {
        *reinterpret_cast<float2*>(to + kHeadDim) = make_float2(top_[slot] * p_.scale_log2, total);
      }
    }
  }

  // Among four lanes: word w of lane l becomes word l of lane w.
  GPU_DEVICE void Transpose(uint32_t (&word)[4]) {
#pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {
      const bool upper = lane_ & bit;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        if (w & bit) continue;
        const uint32_t send = upper ? word[w] : word[w | bit];
        const uint32_t got = __shfl_xor_sync(~0u, send, bit);
        (upper ? word[w] : word[w | bit]) = got;
      }
    }
  }

  SharedTiles<kHeadDim>& s_;
  const AttentionParams& p_;
  const int warpgroup_ = gpu::ThreadX() / 128 - 1;
  const int warp_ = gpu::ThreadX() / 32 % 4, lane_ = gpu::ThreadX() % 32;
  Ring<Shape::kQueryStages> q_;
  Ring<Shape::kStages> k_, v_;
  int newest_[2];  // key that the row sees
  float top_[2], weight_[2], shrink_[2];
  float scores_[kKeys / 2], sum_[kHeadDim / 2];
  uint32_t packed_[kKeys / 4];
};

}  // namespace ashlar::hopper

#endif
