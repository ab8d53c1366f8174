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
// of every layer in order, and between two of them Refill, then Ahead of the second. After kQkv, a
// wave that finds keys of the layer calls AwaitKeys and UseKeys, and then Refill again.
template <class Keys = NoKeys>
class LayerProducts {
 public:
  // Params and layout live on in the kernel's parameters. `shared` has layout.all bytes.
  GPU_DEVICE LayerProducts(const gpu_kernels::LayersParams& params, const ProductsLayout& layout,
                           char* shared, Keys& keys)
      : p_(params),
        l_(layout),
        ring_(params, layout, shared, keys),
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

  // Of keys between the weights, see WeightRing.
  GPU_DEVICE bool HoldsKeys() const { return ring_.HoldsKeys(); }
  GPU_DEVICE char* AwaitKeys() { return ring_.AwaitKeys(); }
  GPU_DEVICE void UseKeys() {
    const int stages = ring_.StagesOfKeys();
    ring_.Use(stages);
    used_ += stages;
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
      for (int pass = 0; pass < own; pass += kPassSlices) {
        const bool asked = own <= kPassSlices || (pass == 0 && first == strips.begin);
        if (!asked) AskNorm(layer, product, pass);
        const int slices = Least(kPassSlices, own - pass);
        Tokens tokens = {};
        // Of the first layer x is what the launch before left; then it is kDown's out.
        if (product == gpu_kernels::kQkv && layer == 0) {
          ReadHidden(pass, slices, tokens);
        } else {
          const bool before = product == gpu_kernels::kQkv;
          ReadX(product, pass, slices, rounds.Of(before ? layer - 1 : layer), tokens);
        }
        if (HasNorm(product)) TakeNorm(slices, tokens, square);
#pragma unroll 1
        for (int strip = 0; strip < count;) {
          const int batch = BatchOf(slices, count - strip);
          ring_.Await(batch * slices);
          MultiplyBatch(tokens, slices, batch, strip, pass > 0);
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
  static constexpr int kVectors = kSliceBytes / 64;  // of a lane in a row of a stage, and in x
  static constexpr int kSliceValues = kSliceBytes / 2;
  static constexpr int kNorms = kPassSlices * kSliceValues / (4 * kWave);  // of a lane

  struct alignas(8) Pair {
    float low, high;
  };
  using Norms = Pair[kVectors][2];  // of a slice
  // x of a pass: the words of each vector that a lane multiplies (MultiplyFolded).
  using Tokens = uint32_t[kPassSlices][kVectors][2];

  const gpu_kernels::LayersParams& p_;
  const ProductsLayout& l_;
  const int thread_ = gpu::ThreadX(), lane_ = thread_ % kWave, wave_ = ThisWave();
  const int quarter_ = lane_ % 4, token_ = lane_ / 4 % 4;  // of x: that this lane multiplies
  WeightRing<Keys> ring_;
  ProductSums sums_;
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
      const int value = i * 4 * kWave + lane_ * 4, slice = value / kSliceValues;
      const int col =
          (wave_ + (pass + slice) * kProductWaves) * kSliceValues + value % kSliceValues;
      if (col < cols) norm_[i] = *reinterpret_cast<const gpu::Four*>(from + col);
    }
  }

  // Calls body(slice, vector, offset) for each vector of x of a pass that is within cols and the
  // tokens, `offset` values after the lane's first.
  template <class Body>
  GPU_DEVICE void ForX(int product, int pass, int slices, Body body) const {
    const int left = token_ < p_.tokens ? p_.product[product].cols - FirstOf(pass) : 0;
#pragma unroll
    for (int s = 0; s < kPassSlices; ++s) {
      if (s >= slices) break;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const int offset = s * kProductWaves * kSliceValues + v * 32;
        if (offset < left) body(s, v, offset);
      }
    }
  }
  template <class Body>
  GPU_DEVICE static void ForAllX(Body body) {
#pragma unroll
    for (int s = 0; s < kPassSlices; ++s) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) body(s, v);
    }
  }
  GPU_DEVICE int FirstOf(int pass) const {
    return (wave_ + pass * kProductWaves) * kSliceValues + ValueOf(0);
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
    Words words[kPassSlices][kVectors];
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

  // Multiplies by the norm's weights, and adds to the products of halves of tokens (even pairs,
  // then odd ones) with each other, whose diagonal is the sums of squares.
  GPU_DEVICE void TakeNorm(int slices, Tokens& tokens, float (&square)[4]) {
#pragma unroll
    for (int i = 0; i < kNorms; ++i) {
      if (i * kPassSlices / kNorms >= slices) break;
      *reinterpret_cast<gpu::Four*>(norms_ + i * 4 * kWave + lane_ * 4) = norm_[i];
    }
    gpu::SyncWave<kWave>();
    Norms by;
    ReadNorms(0, by);
#pragma unroll
    for (int s = 0; s < kPassSlices; ++s) {
      if (s >= slices) break;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        uint32_t(&x)[2] = tokens[s][v];
        MultiplyFolded(square, {{x[0], 0, x[1], 0}}, x);
        x[0] = Times(x[0], by[v][0]);
        x[1] = Times(x[1], by[v][1]);
      }
      if (s + 1 < slices) ReadNorms(s + 1, by);
    }
  }

  // The norm's weights of this lane's words of slice s.
  GPU_DEVICE void ReadNorms(int s, Norms& by) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const float* from = norms_ + s * kSliceValues + ValueOf(v) + lane_ / 16 * 2;
      by[v][0] = *reinterpret_cast<const Pair*>(from);
      by[v][1] = *reinterpret_cast<const Pair*>(from + 4);
    }
  }

  // The first value of k of this lane's vector v of x in a slice.
  GPU_DEVICE int ValueOf(int v) const { return (v * 4 + quarter_) * 8; }

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

  GPU_DEVICE void MultiplyBatch(const Tokens& tokens, int slices, int batch, int strip, bool more) {
    if (slices == 1) {
      if (batch == 4) return MultiplyStages<1, 4>(tokens, strip, more);
      if (batch == 2) return MultiplyStages<1, 2>(tokens, strip, more);
      return MultiplyStages<1, 1>(tokens, strip, more);
    }
    if (slices == 2) {
      if (batch == 2) return MultiplyStages<2, 2>(tokens, strip, more);
      return MultiplyStages<2, 1>(tokens, strip, more);
    }
    if (slices == 3) return MultiplyStages<3, 1>(tokens, strip, more);
    MultiplyStages<4, 1>(tokens, strip, more);
  }

  template <int kSlices, int kStrips>
  GPU_DEVICE void MultiplyStages(const Tokens& tokens, int strip, bool more) {
    constexpr int kStages = kSlices * kStrips;
    constexpr int kSums = kStages < 4 ? 2 : 1;  // of a strip, that do not wait for each other
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
        MultiplyFolded(sum[i / kSlices][c % kSums], stored, tokens[i % kSlices][c]);
      }
    }
    ring_.Use(kStages);
    used_ += kStages;
    float total[kStrips][4];
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        total[i][e] = sum[i][0][e];
        if constexpr (kSums > 1) total[i][e] += sum[i][1][e];
      }
    }
    sums_.Keep(strip, total, more);
  }
};

#endif

}  // namespace ashlar::hopper
