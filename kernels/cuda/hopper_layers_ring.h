// The stream of weights of a launch of whole layers: every wave keeps a ring of stages, each a
// slice of a strip, and asks for the next stage of its own wherever one has been used, on over
// products and layers and without regard to what other waves and blocks do.
#pragma once

#include "hopper_layers_layout.h"

namespace ashlar::hopper {

// The same in all lanes, which the compiler then knows: what depends on it does not diverge.
GPU_DEVICE int ThisWave() { return gpu::Shuffle<32>(gpu::ThreadX() / 32, 0); }

GPU_DEVICE int Least(int a, int b) { return a < b ? a : b; }
GPU_DEVICE int Gated(int product) { return product == gpu_kernels::kGateUp ? 1 : 0; }
GPU_DEVICE bool HasNorm(int product) {
  return product == gpu_kernels::kQkv || product == gpu_kernels::kGateUp;
}

// A block's strips of out.
struct Strips {
  int begin, end;
};
GPU_DEVICE Strips StripsOf(const ProductShare& share) {
  const int block = gpu::BlockX();
  const int begin = block * share.each + (block < share.more ? block : share.more);
  return {begin, begin + share.each + (block < share.more ? 1 : 0)};
}
// How many of k's slices a wave has.
GPU_DEVICE int SlicesOf(const ProductShare& share, int wave) {
  return (share.slices + kProductWaves - 1 - wave) / kProductWaves;
}

// Returns when all but the newest `left` groups of copies are done.
GPU_DEVICE void WaitAllBut(int left) {
  if (left < 4) {
    if (left < 2) return left == 0 ? gpu::WaitCopies<0>() : gpu::WaitCopies<1>();
    return left == 2 ? gpu::WaitCopies<2>() : gpu::WaitCopies<3>();
  }
  if (left < 8) {
    if (left < 6) return left == 4 ? gpu::WaitCopies<4>() : gpu::WaitCopies<5>();
    return left == 6 ? gpu::WaitCopies<6>() : gpu::WaitCopies<7>();
  }
  if (left < 12) {
    if (left < 10) return left == 8 ? gpu::WaitCopies<8>() : gpu::WaitCopies<9>();
    return left == 10 ? gpu::WaitCopies<10>() : gpu::WaitCopies<11>();
  }
  if (left < 14) return left == 12 ? gpu::WaitCopies<12>() : gpu::WaitCopies<13>();
  return left == 14 ? gpu::WaitCopies<14>() : gpu::WaitCopies<15>();
}

#if defined(ASHLAR_HOPPER)

// A wave's ring. The order of stages within a product: slices of a pass, strips of a group (a strip
// of gates, then that of its ups), passes over k, groups. Of each product a wave that has no slice
// and a block that has no strip ask for nothing.
template <class W>
class WeightRing {
 public:
  GPU_DEVICE WeightRing(const gpu_kernels::LayersParams& params, const ProductsLayout& layout,
                        char* shared)
      : p_(params),
        l_(layout),
        ring_(shared + wave_ * l_.stages * kStageBytes),
        // Neighbouring rows are read side by side, so every other one has its halves exchanged.
        to_(ring_ + row_ * kSliceBytes + (vector_ ^ row_ % 2 * 4) * 16) {}

  GPU_DEVICE void Fill() {
    Open();
#pragma unroll 1
    for (int i = 0; i < l_.stages; ++i) Ask();
  }

  // Into the stages that were used first.
  GPU_DEVICE void Ask() {
    if (layer_ < p_.layers) {
      const char* from = at_;
#pragma unroll
      for (int v = 0; v < kStripRows / kRows; ++v, from += rows_bytes_) {
        gpu::CopyToShared(to_ + asked_ * kStageBytes + v * kRows * kSliceBytes, from, left_ > 0);
      }
      at_ += kStep;
      left_ -= kStep;
      if (--slices_ == 0) NextStrip();
    }
    gpu::CommitCopies();
    asked_ = asked_ + 1 == l_.stages ? 0 : asked_ + 1;
  }

  // For so many of the oldest stages. All that were used have been asked for again.
  GPU_DEVICE void Await(int stages) {
    WaitAllBut(l_.stages - stages);
    gpu::SyncWave<kWave>();
  }

  // Stage i of the oldest ones.
  GPU_DEVICE const char* Stage(int i) const {
    const int at = used_ + i;
    return ring_ + (at < l_.stages ? at : at - l_.stages) * kStageBytes;
  }

  // After the wave has read them.
  template <int kStages>
  GPU_DEVICE void Use() {
    gpu::SyncWave<kWave>();
    used_ += kStages;
    if (used_ >= l_.stages) used_ -= l_.stages;
  }

 private:
  static constexpr int kWave = 32, kRows = kWave / kSliceVectors;  // rows that it copies at once
  static constexpr int kStep = kProductWaves * kSliceBytes;        // from a slice to its next

  const gpu_kernels::LayersParams& p_;
  const ProductsLayout& l_;
  const int wave_ = ThisWave();
  const int row_ = gpu::ThreadX() % kWave / kSliceVectors;     // that this lane copies, of kRows
  const int vector_ = gpu::ThreadX() % kWave % kSliceVectors;  // of a slice
  char* const ring_;
  char* const to_;            // this lane's first vector of stage 0
  int asked_ = 0, used_ = 0;  // stage that is asked for next, and that is used next

  // What is asked for next: this lane's first vector of a stage, and how many bytes its row still
  // has; slices of the pass and strips of the group that are left.
  const char* at_ = nullptr;
  int left_ = 0, slices_ = 0, strips_ = 0;
  // The walk's steps: kRows rows, from a strip of gates to its ups', and from one to the next.
  int64_t rows_bytes_ = 0, to_ups_ = 0, to_next_ = 0;
  bool ups_ = false;  // the strip is one of ups
  int layer_ = 0, product_ = -1, first_ = 0, end_ = 0, own_ = 0, pass_ = 0;

  // The next product of which this wave has a stage; layer is p.layers when there is none.
  GPU_DEVICE void Open() {
    Strips mine;
    do {
      if (++product_ == gpu_kernels::kLayerProducts) product_ = 0, ++layer_;
      if (layer_ >= p_.layers) return;
      mine = StripsOf(l_.share[product_]);
      own_ = SlicesOf(l_.share[product_], wave_);
    } while (mine.begin >= mine.end || own_ == 0);
    const gpu_kernels::ProductShape& shape = p_.product[product_];
    const int64_t row_bytes = RowBytes();
    rows_bytes_ = kRows * row_bytes;
    to_next_ = kStripRows * row_bytes;
    if (Gated(product_) != 0) {
      to_ups_ = shape.rows / 2 * row_bytes;
      to_next_ -= to_ups_;
    }
    first_ = mine.begin;
    end_ = mine.end;
    pass_ = 0;
    OpenPass();
  }

  GPU_DEVICE int64_t RowBytes() const { return p_.product[product_].pitch * int64_t{sizeof(W)}; }
  GPU_DEVICE int PassSlicesLeft() const { return Least(kPassSlices<W>, own_ - pass_); }

  GPU_DEVICE void OpenPass() {
    strips_ = Least(l_.share[product_].group, end_ - first_) << Gated(product_);
    slices_ = PassSlicesLeft();
    ups_ = false;
    const int64_t row_bytes = RowBytes();
    const int column = (wave_ + pass_ * kProductWaves) * kSliceBytes + vector_ * 16;
    at_ = static_cast<const char*>(p_.layer[layer_].weight[product_]) +
          (int64_t{first_} * kStripRows + row_) * row_bytes + column;
    left_ = static_cast<int>(row_bytes) - column;
  }

  GPU_DEVICE void NextStrip() {
    slices_ = PassSlicesLeft();
    if (--strips_ > 0) {
      at_ += (Gated(product_) != 0 && !ups_ ? to_ups_ : to_next_) - slices_ * kStep;
      left_ += slices_ * kStep;
      ups_ = !ups_;
      return;
    }
    pass_ += kPassSlices<W>;
    if (pass_ >= own_) {
      pass_ = 0;
      first_ += l_.share[product_].group;
      if (first_ >= end_) return Open();
    }
    OpenPass();
  }
};

#endif

}  // namespace ashlar::hopper
