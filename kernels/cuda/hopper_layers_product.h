// One block's share of the products of a launch of whole layers (gpu/layers.h): norm, product,
// bias, residual or gate. Waves divide k and meet once a group of strips, where they add up; a
// wave's x goes from other blocks' words (hopper_words.h) into registers, in passes over k where it
// does not fit. Bound by the weights' bytes, and by latency where they are few.
#pragma once

#include "hopper_layers_matrix.h"
#include "hopper_layers_ring.h"
#include "hopper_layers_sums.h"

namespace ashlar::hopper {

#if defined(ASHLAR_HOPPER)

// A launch calls Start ahead of WaitForPrevious, then Run for every product
// of every layer in order, and between two of them Refill, then Ahead of the second.
template <class W>
class LayerProducts {
 public:
  // Both live on in the kernel's parameters. `shared` has layout.all bytes.
  GPU_DEVICE LayerProducts(const gpu_kernels::LayersParams& params, const ProductsLayout& layout,
                           char* shared)
      : p_(params),
        l_(layout),
        ring_(params, layout, shared),
        sums_(params, layout, shared),
        norms_(reinterpret_cast<float*>(shared + l_.norms + wave_ * l_.norm_bytes)) {}

  GPU_DEVICE void Start() {
    ring_.Fill();
    Ahead(0, gpu_kernels::kQkv);
  }

  // Asks for what the stages already used give room to.
  GPU_DEVICE void Refill() {
#pragma unroll 1
    for (; used_ > 0; --used_) ring_.Ask();
  }

  // Asks for what Run reads beside x: weights of the model, and hidden states that this block alone
  // writes.
  GPU_DEVICE void Ahead(int layer, int product) {
    const Strips strips = StripsOf(l_.share[product]);
    AskNorm(layer, product, 0);
    sums_.Ahead(layer, product, strips);
  }

  // Once x is there; gives out words of the layer's round.
  GPU_DEVICE void Run(int layer, int product, const Rounds& rounds) {
    const ProductShare& share = l_.share[product];
    const Strips strips = StripsOf(share);
    const int own = SlicesOf(share, wave_), gated = Gated(product);
#pragma unroll 1
    for (int first = strips.begin; first < strips.end; first += share.group) {
      const int count = Least(share.group, strips.end - first) << gated;
      float square[4] = {};
#pragma unroll 1
      for (int pass = 0; pass < own; pass += kPassSlices<W>) {
        const bool asked = own <= kPassSlices<W> || (pass == 0 && first == strips.begin);
        if (!asked) AskNorm(layer, product, pass);
        const int slices = Least(kPassSlices<W>, own - pass);
        Tokens tokens = {};
        // Of the first layer x is what the launch before left; then it is kDown's out.
        if (product == gpu_kernels::kQkv && layer == 0) {
          ReadHidden(pass, slices, tokens);
        } else {
          const bool before = product == gpu_kernels::kQkv;
          ReadX(product, pass, slices, rounds.Of(before ? layer - 1 : layer), tokens);
        }
        if (HasNorm(product)) TakeNorm(slices, tokens, square);
        float by[2];
        Fit(tokens, by);
#pragma unroll 1
        for (int strip = 0; strip < count;) {
          const int batch = BatchOf(slices, count - strip);
          ring_.Await(batch * slices);
          MultiplyBatch(tokens, by, slices, batch, strip, pass > 0);
          strip += batch;
          // Others wait for the last sums.
          const bool last = first + share.group >= strips.end && pass + slices == own;
          if (!last || strip < count) Refill();
        }
      }
      if (own == 0) sums_.KeepNothing(count);
      if (HasNorm(product)) sums_.KeepSquares(square);
      gpu::SyncBlock();
      sums_.Finish(layer, product, strips, first, rounds.Of(layer));
    }
  }

 private:
  using BF16 = gpu_kernels::BF16;
  static constexpr int kWave = 32;
  static constexpr int kVectors = kSliceBytes / 64;  // of a lane in a row of a stage
  static constexpr int kParts = kFoldedParts<W>;     // of x, to a vector
  static constexpr int kXs = kVectors * kParts, kPass = kPassSlices<W>;
  static constexpr int kNormXs = kNormValues / 32;          // that are normed at a time
  static constexpr int kNorms = kPassValues / kNormValues;  // vectors of a lane

  struct alignas(8) Pair {
    float low, high;
  };
  using Norms = Pair[kNormXs][2];
  // x of a pass: the words of each part that a lane multiplies (MultiplyFolded).
  using Tokens = uint32_t[kPass][kXs][2];

  const gpu_kernels::LayersParams& p_;
  const ProductsLayout& l_;
  const int thread_ = gpu::ThreadX(), lane_ = thread_ % kWave, wave_ = ThisWave();
  const int quarter_ = lane_ % 4, token_ = lane_ / 4 % 4;  // of x: that this lane multiplies
  WeightRing<W> ring_;
  ProductSums<W> sums_;
  float* const norms_;           // of this wave
  gpu::Four norm_[kNorms] = {};  // of a pass, as asked for
  int used_ = 0;                 // stages whose room has not been asked for again

  // Slice i of a pass is i'th of this wave; lanes read side by side.
  GPU_DEVICE void AskNorm(int layer, int product, int pass) {
#pragma unroll
    for (gpu::Four& values : norm_) values = {};  // nothing of them lives on
    if (!HasNorm(product)) return;
    const float* from = p_.layer[layer].norm[Gated(product)];
    const int cols = p_.product[product].cols;
#pragma unroll
    for (int i = 0; i < kNorms; ++i) {
      const int value = i * 4 * kWave + lane_ * 4, slice = value / kSliceValues<W>;
      const int col =
          (wave_ + (pass + slice) * kProductWaves) * kSliceValues<W> + value % kSliceValues<W>;
      if (col < cols) norm_[i] = *reinterpret_cast<const gpu::Four*>(from + col);
    }
  }

  // Calls body(slice, part, offset) for each part of x of a pass that is within cols and the
  // tokens, `offset` values after the lane's first.
  template <class Body>
  GPU_DEVICE void ForX(int product, int pass, int slices, Body body) const {
    const int left = token_ < p_.tokens ? p_.product[product].cols - FirstOf(pass) : 0;
#pragma unroll
    for (int s = 0; s < kPass; ++s) {
      if (s >= slices) break;
#pragma unroll
      for (int v = 0; v < kXs; ++v) {
        const int offset = s * kProductWaves * kSliceValues<W> + OffsetOf(v);
        if (offset < left) body(s, v, offset);
      }
    }
  }
  template <class Body>
  GPU_DEVICE static void ForAllX(Body body) {
#pragma unroll
    for (int s = 0; s < kPass; ++s) {
#pragma unroll
      for (int v = 0; v < kXs; ++v) body(s, v);
    }
  }
  GPU_DEVICE int FirstOf(int pass) const {
    return (wave_ + pass * kProductWaves) * kSliceValues<W> + quarter_ * kParts * 8;
  }
  // Pairs ahead of the lane's first of a pass.
  GPU_DEVICE int64_t PairsBefore(int product, int pass) const {
    return static_cast<unsigned>(token_ * p_.product[product].cols + FirstOf(pass)) / 2;
  }

  GPU_DEVICE void ReadHidden(int pass, int slices, Tokens& tokens) const {
    using gpu_kernels::kQkv;
    const uint32_t* const pairs =
        static_cast<const uint32_t*>(p_.hidden) + lane_ / 16 + PairsBefore(kQkv, pass);
    ForX(kQkv, pass, slices, [&](int s, int v, int offset) {
      const uint32_t* from = pairs + offset / 2;
      tokens[s][v][0] = from[0], tokens[s][v][1] = from[2];
    });
  }

  // All words at once, again until all of them are there.
  GPU_DEVICE void ReadX(int product, int pass, int slices, uint32_t round, Tokens& tokens) const {
    const uint64_t* const from =
        ValuesOf(p_.words) + l_.words.x[product] + lane_ / 16 * 2 + PairsBefore(product, pass);
    Words words[kPass][kXs];
    ForAllX([&](int s, int v) { words[s][v].round[0] = words[s][v].round[1] = round; });
    uint32_t unlike;
    do {
      ForX(product, pass, slices,
           [&](int s, int v, int offset) { words[s][v] = ReadWords(from + offset / 2, round); });
      unlike = 0;
      ForAllX([&](int s, int v) { unlike |= words[s][v].Unlike(round); });
    } while (gpu::Any<kWave>(unlike != 0));
    ForAllX([&](int s, int v) {
      tokens[s][v][0] = words[s][v].pair[0];
      tokens[s][v][1] = words[s][v].pair[1];
    });
  }

  // Makes x what weights are multiplied with, by[i] of which are products with token
  // quarter % 2 * 2 + i. Float8 is multiplied as float16, which x would leave: each token is
  // brought to magnitudes below 2^15 by a power of two.
  GPU_DEVICE void Fit(Tokens& tokens, float (&by)[2]) const {
    using gpu_kernels::FromBits;
    by[0] = by[1] = 1;
    if constexpr (sizeof(W) == 2) return;
    uint32_t largest = 0;
    ForAllX([&](int s, int v) {
      for (uint32_t pair : tokens[s][v]) largest = gpu_kernels::LargerBF16(largest, pair);
    });
#pragma unroll
    for (int lane : {1, 2, 16}) {  // the token's others
      largest = gpu_kernels::LargerBF16(largest, gpu::ShuffleXor<kWave>(largest, lane));
    }
    const int low = largest >> 7 & 0xff, high = largest >> 23 & 0xff;  // exponents
    const int power = Least(268 - (low > high ? low : high), 253);
    const float factor = FromBits(static_cast<uint32_t>(power) << 23);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int other = gpu::Shuffle<kWave>(power, (quarter_ % 2 * 2 + i) * 4);
      by[i] = FromBits(static_cast<uint32_t>(254 - other) << 23);
    }
    ForAllX([&](int s, int v) {
      for (uint32_t& pair : tokens[s][v]) {
        pair = gpu_kernels::TimesPower(pair, factor);
        pair =
            gpu_kernels::Pack<gpu_kernels::F16>(FromBits(pair << 16), FromBits(pair & 0xffff0000u));
      }
    });
  }

  // Multiplies by the norm's weights, and adds to the products of halves of tokens (even pairs,
  // then odd ones) with each other, whose diagonal is the sums of squares.
  GPU_DEVICE void TakeNorm(int slices, Tokens& tokens, float (&square)[4]) {
    Norms by;
    PutNorms(0);
    gpu::SyncWave<kWave>();
    ReadNorms(0, by);
#pragma unroll
    for (int i = 0; i < kNorms; ++i) {
      if (i * kNormXs / kXs >= slices) break;
      const bool more = (i + 1) * kNormXs / kXs < slices;
      if (i + 1 < kNorms && more) PutNorms(i + 1);
      gpu::SyncWave<kWave>();
#pragma unroll
      for (int v = 0; v < kNormXs; ++v) {
        uint32_t(&x)[2] = tokens[i * kNormXs / kXs][i * kNormXs % kXs + v];
        MultiplyFolded<BF16>(square, {{x[0], 0, x[1], 0}}, x);
        x[0] = Times(x[0], by[v][0]);
        x[1] = Times(x[1], by[v][1]);
      }
      if (i + 1 < kNorms && more) ReadNorms(i + 1, by);
    }
  }

  // Between the last reading of a place and the next writing there is a SyncWave, from one call of
  // TakeNorm to the next too.
  //
  // The norm's weights of kNormXs parts of x, which a wave has brought side by side, and this
  // lane's words of them; two such places in turn.
  GPU_DEVICE void PutNorms(int i) {
    *reinterpret_cast<gpu::Four*>(norms_ + i % 2 * kNormValues + lane_ * 4) = norm_[i];
  }
  GPU_DEVICE void ReadNorms(int i, Norms& by) const {
    const float* const words =
        norms_ + i % 2 * kNormValues + quarter_ * kParts * 8 + lane_ / 16 * 2;
#pragma unroll
    for (int v = 0; v < kNormXs; ++v) {
      const float* from = words + OffsetOf(v);
      by[v][0] = *reinterpret_cast<const Pair*>(from);
      by[v][1] = *reinterpret_cast<const Pair*>(from + 4);
    }
  }

  // How far values of this lane's part v of x in a slice are behind its first.
  GPU_DEVICE static constexpr int OffsetOf(int v) {
    return (v / kParts * 4 * kParts + v % kParts) * 8;
  }

  GPU_DEVICE static uint32_t Times(uint32_t word, const Pair& by) {
    return gpu_kernels::Pack<BF16>(gpu_kernels::FromBits(word << 16) * by.low,
                                   gpu_kernels::FromBits(word & 0xffff0000u) * by.high);
  }

  // Strips that are multiplied at once where so many are left.
  GPU_DEVICE static int BatchOf(int slices, int left) {
    int batch = slices == 1 ? 4 : slices == 2 ? 2 : 1;
    while (batch > left) batch /= 2;
    return batch;
  }

  GPU_DEVICE void MultiplyBatch(const Tokens& tokens, const float (&by)[2], int slices, int batch,
                                int strip, bool more) {
    if (slices == 1) {
      if (batch == 4) return MultiplyStages<1, 4>(tokens, by, strip, more);
      if (batch == 2) return MultiplyStages<1, 2>(tokens, by, strip, more);
      return MultiplyStages<1, 1>(tokens, by, strip, more);
    }
    if (slices == 2) {
      if (batch == 2) return MultiplyStages<2, 2>(tokens, by, strip, more);
      return MultiplyStages<2, 1>(tokens, by, strip, more);
    }
    if constexpr (kPass == 4) {
      if (slices == 3) return MultiplyStages<3, 1>(tokens, by, strip, more);
      MultiplyStages<4, 1>(tokens, by, strip, more);
    }
  }

  template <int kSlices, int kStrips>
  GPU_DEVICE void MultiplyStages(const Tokens& tokens, const float (&by)[2], int strip, bool more) {
    constexpr int kStages = kSlices * kStrips;
    constexpr int kSums =
        kParts > 1 || kStages < 4 ? 2 : 1;  // of a strip, that do not wait for each other
    float sum[kStrips][kSums][4] = {};
    const int row = lane_ / 4, flip = row % 2 * 64;
    const char* from[kStages];
#pragma unroll
    for (int i = 0; i < kStages; ++i) from[i] = ring_.Stage(i) + row * kSliceBytes + quarter_ * 16;
#pragma unroll
    for (int c = 0; c < kVectors; ++c) {
#pragma unroll
      for (int i = 0; i < kStages; ++i) {
        const auto& stored = *reinterpret_cast<const gpu::Vector*>(from[i] + (c * 64 ^ flip));
        MultiplyStored<W>(sum[i / kSlices][c % kSums], stored, &tokens[i % kSlices][c * kParts]);
      }
    }
    ring_.template Use<kStages>();
    used_ += kStages;
    float total[kStrips][4];
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        total[i][e] = sum[i][0][e];
        if constexpr (kSums > 1) total[i][e] += sum[i][1][e];
        if constexpr (sizeof(W) == 1) total[i][e] *= by[e % 2];
      }
    }
    sums_.Keep(strip, total, more);
  }
};

#endif

}  // namespace ashlar::hopper
