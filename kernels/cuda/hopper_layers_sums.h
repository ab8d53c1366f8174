// Where a product of hopper_layers_product.h ends: waves keep their sums, and the block adds them
// up and finishes what it has of out: the norm's scale, bias, residual or gate. A thread finishes
// neighbouring rows of a token by two, of kOutput and of kDown the same ones in all layers: the
// residual is its own.
//
// Sums lie in two places in turn. A wave keeps sums where those of the turn before the last were,
// which others have added up before the SyncBlock of the last.
#pragma once

#include "gpu/activation.h"
#include "gpu/number.h"
#include "hopper_layers_ring.h"

namespace ashlar::hopper {

#if defined(ASHLAR_HOPPER)

// Of products "folded" as MultiplyFolded (hopper_layers_matrix.h) leaves them.
template <class W>
class ProductSums {
 public:
  GPU_DEVICE ProductSums(const gpu_kernels::LayersParams& params, const ProductsLayout& layout,
                         char* shared)
      : p_(params),
        l_(layout),
        sums_(reinterpret_cast<float*>(shared + l_.sums)),
        kept_(sums_ + wave_ * l_.sum_pitch + quarter_ * 2 * kStripRows + lane_ / 4),
        squares_(reinterpret_cast<float*>(shared + l_.squares)) {}

  // Asks for what stands around this thread's first pair of a product, and finds where that goes.
  GPU_DEVICE void Ahead(int layer, int product, const Strips& strips) {
    around_ = AroundOf(layer, product, PairOf(product, strips, strips.begin, 0));
    asm volatile("" : "+l"(around_.to));  // here: what follows the sums is short
  }

  // This wave's part of the sums of neighbouring strips, or what is to be added to it.
  template <int kStrips>
  GPU_DEVICE void Keep(int strip, const float (&sum)[kStrips][4], bool more) {
    float whole[kStrips][2];
#pragma unroll
    for (int i = 0; i < kStrips; ++i) Unfold(sum[i], whole[i]);
    if (quarter_ >= 2) return;
    float* at = kept_ + turn_ * kProductWaves * l_.sum_pitch + strip * strip_floats_;
    // Decided once: others wait for each load that a sum would need ahead of it.
    const auto keep = [&](auto put) {
#pragma unroll
      for (int i = 0; i < kStrips; ++i) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (quarter_ * 2 + e >= p_.tokens) continue;
          put(at[i * strip_floats_ + e * kStripRows], whole[i][e]);
        }
      }
    };
    if (more) {
      keep([](float& place, float part) { place += part; });
    } else {
      keep([](float& place, float part) { place = part; });
    }
  }

  GPU_DEVICE void KeepNothing(int strips) {
    const float nothing[1][4] = {};
#pragma unroll 1
    for (int strip = 0; strip < strips; ++strip) Keep(strip, nothing, false);
  }

  GPU_DEVICE void KeepSquares(const float (&square)[4]) {
    // The diagonal's, and four further on that of its other half.
    const int token = lane_ / 4 % 4;
    const float part = token % 2 == 0 ? square[0] : square[1];
    const float whole = part + gpu::ShuffleXor<kWave>(part, 16 + 2);
    if (lane_ >= 16 || quarter_ != token / 2) return;
    Squares()[wave_ * gpu_kernels::kMostLayerTokens + token] = whole;
  }

  // Adds up what the waves, which a SyncBlock has shown, have of the group that begins at strip
  // `first`, and gives it out.
  GPU_DEVICE void Finish(int layer, int product, const Strips& strips, int first, uint32_t round) {
    using namespace gpu_kernels;
    const int gated = Gated(product), step = l_.sum_pitch;
    bool asked = first == strips.begin;  // Ahead
    Pair e = PairOf(product, strips, first, 0);
#pragma unroll 1
    for (int more = 0; e.exists; e = PairOf(product, strips, first, more)) {
      if (!asked) around_ = AroundOf(layer, product, e);
      asked = false;
      const float* const part = sums_ + turn_ * kProductWaves * step + around_.part;
      const float scale = ScaleOf(e.token);
      Two value;
      if (gated != 0) {
        Two up;
#pragma unroll
        for (int w = 0; w < kProductWaves; ++w) {
          value += At(part + w * step);
          up += At(part + w * step + strip_floats_);
        }
        const Two by = Scaled(scale, around_.by), up_by = Scaled(scale, around_.up_by);
        value.low = Gate(value.low * by.low, up.low * up_by.low);
        value.high = Gate(value.high * by.high, up.high * up_by.high);
      } else {
#pragma unroll
        for (int w = 0; w < kProductWaves; ++w) value += At(part + w * step);
        const uint32_t before = around_.before;
        const Two by = Scaled(scale, around_.by);
        value.low = value.low * by.low + around_.add.low + FromBits(before << 16);
        value.high = value.high * by.high + around_.add.high + FromBits(before & 0xffff0000u);
      }
      const uint32_t pair = Pack<BF16>(value.low, value.high);
      WriteWord(around_.to, pair, round);
      if (Adds(product)) *HiddenOf(e) = pair;
      more += 2 << l_.token_bits;
    }
    turn_ ^= 1;
  }

 private:
  using BF16 = gpu_kernels::BF16;
  static constexpr int kWave = 32;

  struct alignas(8) Two {
    float low = 0, high = 0;

    GPU_DEVICE void operator+=(const Two& other) { low += other.low, high += other.high; }
  };
  // Neighbouring elements of out that a thread finishes.
  struct Pair {
    int token, at, row;  // at: of the group
    bool exists;
  };
  // What stands around them beside the product, and where they go.
  struct Around {
    int part = 0;     // of a wave's sums, in floats
    float share = 0;  // of a column in the mean of squares; 0 without a norm
    uint64_t* to = nullptr;
    Two add, by, up_by;   // by: scales of rows, where weights have some
    uint32_t before = 0;  // of the hidden states
  };

  const gpu_kernels::LayersParams& p_;
  const ProductsLayout& l_;
  const int thread_ = gpu::ThreadX(), lane_ = thread_ % kWave, wave_ = ThisWave();
  const int quarter_ = lane_ % 4;
  const int strip_floats_ = p_.tokens * kStripRows;
  float* const sums_;     // [turn, wave, strip, token, row]
  float* const kept_;     // this lane's first, of strip 0
  float* const squares_;  // [turn, wave, token]
  int turn_ = 0;
  Around around_;

  GPU_DEVICE static Two At(const float* from) { return *reinterpret_cast<const Two*>(from); }
  GPU_DEVICE float* Squares() const {
    return squares_ + turn_ * kProductWaves * gpu_kernels::kMostLayerTokens;
  }
  GPU_DEVICE float Gate(float gate, float up) const {
    return gpu_kernels::Activate(p_.activation, gate) * up;
  }
  GPU_DEVICE static bool Adds(int product) {
    return product == gpu_kernels::kOutput || product == gpu_kernels::kDown;
  }
  GPU_DEVICE uint32_t* HiddenOf(const Pair& e) const {
    const int hidden = p_.product[gpu_kernels::kQkv].cols;
    return static_cast<uint32_t*>(p_.hidden) + (e.token * hidden + e.row) / 2;
  }

  // Both parts of a row's sum, for tokens 2 * (lane % 2) and the next in every lane that has
  // quarter % 2 == lane % 2.
  GPU_DEVICE void Unfold(const float (&sum)[4], float (&whole)[2]) const {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float part = quarter_ < 2 ? sum[e] : sum[2 + e];
      whole[e] = part + gpu::ShuffleXor<kWave>(part, 2);
    }
  }

  // What sums of products are multiplied by: the norm's scale, and the rows'.
  GPU_DEVICE static Two Scaled(float scale, const Two& rows) {
    if constexpr (sizeof(W) == 2) return {scale, scale};
    return {scale * rows.low, scale * rows.high};
  }

  GPU_DEVICE float ScaleOf(int token) const {
    if (around_.share == 0) return 1;
    float total = 0;
#pragma unroll
    for (int w = 0; w < kProductWaves; ++w) {
      total += Squares()[w * gpu_kernels::kMostLayerTokens + token];
    }
    return gpu::InverseRoot(total * around_.share + p_.eps);
  }

  // This thread's pair of a group that begins at strip `first`, `more` rows after its first.
  GPU_DEVICE Pair PairOf(int product, const Strips& strips, int first, int more) const {
    const int token = thread_ >> l_.token_bits;
    const int at = (thread_ & ((1 << l_.token_bits) - 1)) * 2 + more;
    const int rows = Least(l_.share[product].group, strips.end - first) * kStripRows;
    return {token, at, first * kStripRows + at, token < p_.tokens && at < rows};
  }

  GPU_DEVICE Around AroundOf(int layer, int product, const Pair& e) const {
    using namespace gpu_kernels;
    Around found;
    if (!e.exists) return found;
    const int gated = Gated(product), cols = p_.product[product].rows >> gated;
    found.part =
        (e.at / kStripRows << gated) * strip_floats_ + e.token * kStripRows + e.at % kStripRows;
    found.to =
        ValuesOf(p_.words) + PlaceOfOut(l_.words, product) + e.token * (cols / 2) + WordOf(e.row);
    if (HasNorm(product)) {
      found.share = gpu::Reciprocal(static_cast<float>(p_.product[product].cols));
    }
    const LayerPlaces& places = p_.layer[layer];
    if (product == kQkv && places.bias[0] != nullptr) found.add = At(places.bias[0] + e.row);
    if (product == kOutput && places.bias[1] != nullptr) found.add = At(places.bias[1] + e.row);
    if (Adds(product)) found.before = *HiddenOf(e);
    if constexpr (sizeof(W) == 1) {
      const float* const scales = places.scale[product] + e.row;
      found.by = At(scales);
      if (gated != 0) found.up_by = At(scales + cols);
    }
    return found;
  }
};

#endif

}  // namespace ashlar::hopper
