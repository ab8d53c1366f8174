// The second pass of sampling: a block makes an id of what the first pass left of a row. It looks
// for the worst rank that is kept among the candidates, and in the whole row, which it then reads
// again, when the cut lies below them. Nothing is sorted: bands of ranks are counted and weighed,
// and the band where the cut falls is divided again until it is small. Weights are summed as
// integers, so their order does not matter.
#pragma once

#include "sample_slice.h"

namespace ashlar::gpu_kernels {

inline constexpr int kRowThreads = 512;
inline constexpr int kBands = 2048;
inline constexpr int kMostStaged = 4096;  // candidates of a row
inline constexpr int kMostListed = 384;   // of the band where the cut falls
inline constexpr int kMostSlices = 128;   // sums of 2^20 weights of at most 2^43 fit 64 bits
inline constexpr float kMassUnit = 0x1p43f;
inline constexpr uint64_t kNoMass = ~uint64_t{0};  // a limit that is not reached
static_assert(kSlice % kRowThreads == 0 && kBands % kRowThreads == 0);

struct RowShared {
  uint64_t scratch[kRowThreads / 32];
  uint64_t staged[kMostStaged];
  uint64_t listed[kMostListed], listed_mass[kMostListed];
  uint32_t count[kBands], low[kBands], high[kBands];  // of a band, or of a slice
  uint32_t staged_size, list_size;
  int32_t band, picked;
  uint32_t band_count;
  uint64_t before_count, before_mass;
  uint64_t cut, cut_mass;
};
static_assert(sizeof(RowShared) <= 64 << 10);  // what a block of every device may have

// Equal or better ranks are in equal or lower bands. The first division is even over the logits,
// which spreads them well; further ones are over the ranks, which differ for any two ids.
struct Bands {
  uint64_t top;
  float best, scale;  // 0: over the ranks
  int shift = 0;

  GPU_DEVICE Bands(uint64_t top_, uint64_t from, bool even) : top(top_), best(LogitOf(top_)) {
    const float spread = best - LogitOf(from);
    scale = even && spread > 1e-30f && spread < 1e37f ? kBands / spread : 0;
    while (scale == 0 && (top - from) >> shift >= kBands) ++shift;
  }
  GPU_DEVICE int Of(uint64_t rank) const {
    if (scale == 0) return static_cast<int>((top - rank) >> shift);
    const int band = static_cast<int>((best - LogitOf(rank)) * scale);
    return band < kBands ? band : kBands - 1;
  }
};

template <int kWave>
class RowDraw {
 public:
  GPU_DEVICE RowDraw(const SampleParams& p, RowShared& shared)
      : p_(p),
        s_(shared),
        row_(gpu::BlockX()),
        thread_(gpu::ThreadX()),
        logits_(p.logits + row_ * p.pitch),
        slice_(p.slice + row_ * p.slices),
        candidates_(p.candidates + row_ * p.slices * kMostCandidates),
        draw_(p.draws[row_]),
        settings_(draw_, p.vocab) {}

  GPU_DEVICE int32_t Draw() {
    best_ = OverSlices(Max{}, [](const Slice& slice) {
      return slice.finite != 0 ? RankOf(slice.best, slice.best_id) : ~uint64_t{0};
    });
    if (best_ == ~uint64_t{0}) return -1;
    if (settings_.greedy) return IdOf(best_);
    const auto mass = [this](const Slice& slice) {
      return static_cast<uint64_t>(slice.mass * settings_.Weight(slice.best, LogitOf(best_)) *
                                   kMassUnit);
    };
    if (!settings_.Cuts()) return Pick(thread_ < p_.slices ? mass(slice_[thread_]) : 0, 0);

    const uint64_t total = OverSlices(Sum{}, mass);
    floor_ = OverSlices(Max{}, [](const Slice& slice) { return RankOf(slice.bound, -1); });
    whole_ = !StageMost();
    if (whole_ || !Cut(total)) {
      whole_ = true;
      floor_ = ~OverSlices(Max{}, [](const Slice& slice) { return ~RankOf(slice.least, -1); });
      (void)Cut(total);
    }
    SumKept();
    return Pick(thread_ < p_.slices ? MassAt(thread_) : 0, s_.cut);
  }

 private:
  struct Max {
    GPU_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const { return a > b ? a : b; }
  };
  struct Sum {
    GPU_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
  };

  GPU_DEVICE uint64_t MassOf(uint64_t rank) const {
    return static_cast<uint64_t>(settings_.Weight(LogitOf(rank), LogitOf(best_)) * kMassUnit);
  }
  GPU_DEVICE void AddMass(int at, uint64_t mass) const {
    const uint32_t low = static_cast<uint32_t>(mass);
    const uint32_t sum = gpu::AtomicAdd(&s_.low[at], low) + low;
    const uint32_t carried = static_cast<uint32_t>(mass >> 32) + (sum < low ? 1 : 0);
    if (carried != 0) gpu::AtomicAdd(&s_.high[at], carried);
  }
  GPU_DEVICE uint64_t MassAt(int at) const { return uint64_t{s_.high[at]} << 32 | s_.low[at]; }
  GPU_DEVICE void ClearBands() const {
    gpu::SyncBlock();
    for (int i = thread_; i < kBands; i += kRowThreads) s_.count[i] = s_.low[i] = s_.high[i] = 0;
    gpu::SyncBlock();
  }

  // By each wave for itself.
  template <class Op, class Of>
  GPU_DEVICE uint64_t OverSlices(Op op, Of of) const {
    uint64_t value = 0;
    for (int i = thread_ % kWave; i < p_.slices; i += kWave) value = op(value, of(slice_[i]));
    return WaveReduce<kWave>(value, op);
  }

  // Brings the candidates from the floor up into shared memory, a wave those of a slice. False when
  // they are too many.
  GPU_DEVICE bool Stage() const {
    constexpr int kAtOnce = 8;
    const int lane = thread_ % kWave;
    if (thread_ == 0) s_.staged_size = 0;
    gpu::SyncBlock();
    for (int i = thread_ / kWave; i < p_.slices; i += kRowThreads / kWave) {
      const uint64_t* from = candidates_ + i * kMostCandidates;
      const int count = slice_[i].candidates;
      for (int first = lane; first - lane < count; first += kAtOnce * kWave) {
        uint64_t rank[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const int at = first + j * kWave;
          rank[j] = at < count ? RankOfCandidate(from[at]) : 0;
        }
        uint32_t mine = 0;
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) mine += rank[j] >= floor_ ? 1 : 0;
        const uint32_t through = WaveSumThrough<kWave>(mine);
        uint32_t at = 0;
        if (lane == kWave - 1) at = gpu::AtomicAdd(&s_.staged_size, through);
        at = gpu::Shuffle<kWave>(at, kWave - 1) + through - mine;
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          if (rank[j] >= floor_ && at < kMostStaged) s_.staged[at++] = rank[j];
        }
      }
    }
    gpu::SyncBlock();
    return s_.staged_size <= kMostStaged;
  }

  // The same from a floor that is raised while they are too many: the cut is mostly near the best.
  GPU_DEVICE bool StageMost() {
    for (int tries = 0; tries < 4; ++tries) {
      if (Stage()) return true;
      gpu::SyncBlock();  // all have seen how many there were
      floor_ = RankOf((LogitOf(floor_) + LogitOf(best_)) / 2, -1);
    }
    return false;
  }

  // Calls body(rank) for this thread's share of the candidates or of the whole row; after_slice()
  // when all threads have gone through the same slice of the row.
  template <class Body, class AfterSlice>
  GPU_DEVICE void ForEach(Body body, AfterSlice after_slice) const {
    if (!whole_) {
      const int size = static_cast<int>(s_.staged_size);
      for (int i = thread_; i < size; i += kRowThreads) body(s_.staged[i]);
      return;
    }
    constexpr int kMine = kSlice / kRowThreads;
    for (int slice = 0; slice < p_.slices; ++slice) {
      float logit[kMine];
      const int first = slice * kSlice + thread_;
#pragma unroll
      for (int i = 0; i < kMine; ++i) {
        const int id = first + i * kRowThreads;
        if (id < p_.vocab) logit[i] = logits_[id];
      }
#pragma unroll
      for (int i = 0; i < kMine; ++i) {
        const int id = first + i * kRowThreads;
        if (id < p_.vocab) body(RankOf(logit[i], id));
      }
      after_slice(slice);
    }
  }
  template <class Body>
  GPU_DEVICE void ForEach(Body body) const {
    ForEach(body, [](int) {});
  }

  // Sets s_.cut, the worst rank that is kept. False when it may lie below the candidates; of the
  // whole row, a limit that rounding leaves unreached cuts nothing.
  GPU_DEVICE bool Cut(uint64_t total) {
    gpu::SyncBlock();
    if (thread_ == 0) s_.cut = whole_ ? 1 : 0, s_.cut_mass = total;
    gpu::SyncBlock();
    const uint64_t most = settings_.top_k > 0 ? static_cast<uint64_t>(settings_.top_k) : kNoMass;
    if (settings_.top_k > 0 && !KeepBest(most, kNoMass) && !whole_) return false;
    if (settings_.top_p < 1) {
      const double enough = settings_.top_p * static_cast<double>(s_.cut_mass);
      const uint64_t limit = enough > 1 ? static_cast<uint64_t>(enough) : 1;
      if (!KeepBest(most, limit) && !whole_) return false;
    }
    uint64_t cut = s_.cut;
    if (settings_.min_p > 0) {
      const uint64_t enough = RankOf(LogitOf(best_) + settings_.min_depth, -1);
      if (enough > cut) cut = enough;
    }
    gpu::SyncBlock();
    if (thread_ == 0) s_.cut = cut;
    gpu::SyncBlock();
    return whole_ || cut >= floor_;
  }

  // The fewest best that are `most` or weigh `enough`: s_.cut and s_.cut_mass. False when there are
  // not so many from the floor up.
  GPU_DEVICE bool KeepBest(uint64_t most, uint64_t enough) const {
    const bool weigh = settings_.top_p < 1;
    uint64_t top = best_, from = floor_, before_count = 0, before_mass = 0;
    for (bool first = true;; first = false) {
      const Bands bands(top, from, first);
      if (thread_ == 0) s_.band = -1, s_.list_size = 0;
      ClearBands();
      ForEach([&](uint64_t rank) {
        if (rank < from || rank > top) return;
        const int band = bands.Of(rank);
        gpu::AtomicAdd(&s_.count[band], 1u);
        if (weigh) AddMass(band, MassOf(rank));
      });
      gpu::SyncBlock();
      FindBand(before_count, before_mass, most, enough);
      gpu::SyncBlock();
      const int found = s_.band;
      if (found < 0) return false;
      before_count = s_.before_count, before_mass = s_.before_mass;
      if (s_.band_count <= kMostListed) {
        ForEach([&](uint64_t rank) {
          if (rank < from || rank > top || bands.Of(rank) != found) return;
          const uint32_t at = gpu::AtomicAdd(&s_.list_size, 1u);
          s_.listed[at] = rank;
          s_.listed_mass[at] = MassOf(rank);
        });
        gpu::SyncBlock();
        CutList(before_count, before_mass, most, enough);
        gpu::SyncBlock();
        return true;
      }
      uint64_t greatest = 0, least = 0;  // the least with its bits turned
      ForEach([&](uint64_t rank) {
        if (rank < from || rank > top || bands.Of(rank) != found) return;
        greatest = rank > greatest ? rank : greatest;
        least = ~rank > least ? ~rank : least;
      });
      top = BlockReduce<kWave>(greatest, s_.scratch, Max{});
      from = ~BlockReduce<kWave>(least, s_.scratch, Max{});
    }
  }

  // The band in which a limit is reached, with what lies before it.
  GPU_DEVICE void FindBand(uint64_t count, uint64_t mass, uint64_t most, uint64_t enough) const {
    constexpr int kMine = kBands / kRowThreads;
    uint64_t my_count = 0, my_mass = 0, all = 0;
    for (int i = thread_ * kMine; i < (thread_ + 1) * kMine; ++i) {
      my_count += s_.count[i];
      my_mass += MassAt(i);
    }
    count += BlockSumBefore<kWave>(my_count, s_.scratch, &all);
    mass += BlockSumBefore<kWave>(my_mass, s_.scratch, &all);
    for (int i = thread_ * kMine; i < (thread_ + 1) * kMine; ++i) {
      if (count >= most || mass >= enough) return;
      if (count + s_.count[i] >= most || mass + MassAt(i) >= enough) {
        s_.band = i, s_.band_count = s_.count[i];
        s_.before_count = count, s_.before_mass = mass;
        return;
      }
      count += s_.count[i];
      mass += MassAt(i);
    }
  }

  GPU_DEVICE void CutList(uint64_t count, uint64_t mass, uint64_t most, uint64_t enough) const {
    const int size = static_cast<int>(s_.list_size);
    if (thread_ >= size) return;
    const uint64_t rank = s_.listed[thread_], before = count;
    for (int i = 0; i < size; ++i) {
      if (s_.listed[i] <= rank) continue;
      ++count;
      mass += s_.listed_mass[i];
    }
    const uint64_t through = mass + s_.listed_mass[thread_];
    const bool last = count + 1 - before == static_cast<uint64_t>(size);
    if (count >= most || mass >= enough) return;
    if (!last && count + 1 < most && through < enough) return;
    s_.cut = rank, s_.cut_mass = through;
  }

  // The mass that is kept of each slice, in low and high.
  GPU_DEVICE void SumKept() const {
    ClearBands();
    const uint64_t cut = s_.cut;
    uint64_t mine = 0;
    ForEach(
        [&](uint64_t rank) {
          if (rank < cut) return;
          if (whole_) {
            mine += MassOf(rank);
          } else {
            AddMass(IdOf(rank) / kSlice, MassOf(rank));
          }
        },
        [&](int slice) {
          const uint64_t sum = WaveReduce<kWave>(mine, Sum{});
          if (thread_ % kWave == 0 && sum > 0) AddMass(slice, sum);
          mine = 0;
        });
    gpu::SyncBlock();
  }

  // The first id at which the mass from `cut` up passes the draw's uniform; thread i brings the
  // mass of slice i.
  GPU_DEVICE int32_t Pick(uint64_t mine, uint64_t cut) const {
    constexpr int kMine = kSlice / kRowThreads;
    uint64_t all = 0, before = BlockSumBefore<kWave>(mine, s_.scratch, &all);
    uint64_t target = static_cast<uint64_t>(draw_.uniform * static_cast<double>(all));
    if (target >= all) target = all - 1;
    if (before <= target && target < before + mine) s_.band = thread_, s_.before_mass = before;
    if (thread_ == 0) s_.picked = IdOf(best_);  // stays where rounding left the slice no mass
    gpu::SyncBlock();
    const int first = s_.band * kSlice + thread_ * kMine;
    target -= s_.before_mass;
    float logit[kMine];
    if (p_.aligned && first + kMine <= p_.vocab) {
#pragma unroll
      for (int i = 0; i < kMine; i += 4) {
        const auto four = *reinterpret_cast<const gpu::Vector*>(logits_ + first + i);
        for (int j = 0; j < 4; ++j) logit[i + j] = FromBits(four.word[j]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kMine; ++i) {
        if (first + i < p_.vocab) logit[i] = logits_[first + i];
      }
    }
    const auto mass = [&](int i) -> uint64_t {
      if (first + i >= p_.vocab) return 0;
      const uint64_t rank = RankOf(logit[i], first + i);
      return rank >= cut ? MassOf(rank) : 0;
    };
    mine = 0;
#pragma unroll
    for (int i = 0; i < kMine; ++i) mine += mass(i);
    before = BlockSumBefore<kWave>(mine, s_.scratch, &all);
    if (target >= all) target = all - 1;  // sums of a slice differ by rounding
    if (before <= target && target < before + mine) {
      int skipped = 0;  // of this thread's ids
#pragma unroll
      for (int i = 0; i < kMine; ++i) {
        before += mass(i);
        skipped += before <= target ? 1 : 0;
      }
      s_.picked = first + skipped;
    }
    gpu::SyncBlock();
    return s_.picked;
  }

  const SampleParams& p_;
  RowShared& s_;
  const int64_t row_;
  const int thread_;
  const float* logits_;
  const Slice* slice_;
  const uint64_t* candidates_;
  const ashlar_draw draw_;
  const Settings settings_;
  uint64_t best_ = 0;   // rank of the best
  uint64_t floor_ = 0;  // ranks from here up are all looked at
  bool whole_ = false;  // the row itself is looked at
};

template <int kWave>
GPU_KERNEL void GPU_BOUNDS(kRowThreads, 2) RowKernel(const SampleParams p) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  if constexpr (gpu::RunsWave<kWave>()) {
    RowDraw<kWave> draw(p, *reinterpret_cast<RowShared*>(gpu::SharedMemory()));
    const int32_t id = draw.Draw();
    if (gpu::ThreadX() == 0) p.ids[gpu::BlockX()] = id;
  }
}

}  // namespace ashlar::gpu_kernels
