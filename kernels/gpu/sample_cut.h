// Where a row is cut: the worst rank that is kept of those that stand in shared memory, or of the
// whole row, which is then read again. Nothing is sorted: bands of ranks are counted and weighed,
// and the band where the cut falls is divided again until it is small. Weights are summed as
// integers, so their order does not matter.
#pragma once

#include "block.h"
#include "sample_rank.h"

namespace ashlar::gpu_kernels {

inline constexpr int kRowThreads = 512;
inline constexpr int kBands = 2048;
inline constexpr int kMostStaged = 4096;
inline constexpr int kMostListed = 384;  // of the band where the cut falls
inline constexpr int kFew = 128;         // so many are compared all with all
inline constexpr int kMostSlices = 512;  // sums of 2^20 weights of at most 2^43 fit 64 bits
inline constexpr float kMassUnit = 0x1p43f;
inline constexpr uint64_t kNoMass = ~uint64_t{0};  // a limit that is not reached
static_assert(kMostSlices <= kRowThreads && kMostListed <= kRowThreads && kFew <= kMostListed);
static_assert(kSlice % kRowThreads == 0 && kBands % kRowThreads == 0);

struct RowShared {
  uint64_t scratch[kRowThreads / 32];
  uint64_t staged[kMostStaged];
  uint64_t listed[kMostListed], mass[kMostListed];
  uint32_t count[kBands], low[kBands], high[kBands];  // of a band, or of a slice
  uint32_t staged_size, list_size;
  int32_t band, picked;
  uint32_t band_count;
  uint64_t before_count, before_mass;
  uint64_t total;  // the mass of a row that top_p alone cuts
  uint64_t cut, cut_mass;
  uint64_t summed;  // the cut from which on low and high are the masses of slices; kNoMass: none
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

struct Greater {
  GPU_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const { return a > b ? a : b; }
};
struct Sum {
  GPU_DEVICE uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
};

// What is looked at.
enum class Looked {
  kStaged,  // logits that are staged
  kRow
};

template <int kWave>
struct RowCut {
  const SampleParams& p;
  RowShared& s;
  const Settings settings;
  const float* logits;  // of the row
  const int thread = gpu::ThreadX();
  Looked looked = Looked::kStaged;
  float best = 0;     // of the row
  uint64_t from = 0;  // ranks from here up are all looked at

  GPU_DEVICE uint64_t LogitMass(float logit) const {
    return static_cast<uint64_t>(settings.Weight(logit, best) * kMassUnit);
  }
  GPU_DEVICE uint64_t MassOf(const Group& group) const {
    return static_cast<uint64_t>(FromBits(group.rest) * settings.Weight(group.best, best) *
                                 kMassUnit);
  }
  GPU_DEVICE uint64_t MassOf(uint64_t rank) const { return LogitMass(LogitOf(rank)); }
  GPU_DEVICE void AddMass(int at, uint64_t mass) const {
    const uint32_t low = static_cast<uint32_t>(mass);
    const uint32_t sum = gpu::AtomicAdd(&s.low[at], low) + low;
    const uint32_t carried = static_cast<uint32_t>(mass >> 32) + (sum < low ? 1 : 0);
    if (carried != 0) gpu::AtomicAdd(&s.high[at], carried);
  }
  GPU_DEVICE uint64_t MassAt(int at) const { return uint64_t{s.high[at]} << 32 | s.low[at]; }
  GPU_DEVICE void ClearBands() const {
    gpu::SyncBlock();
    for (int i = thread; i < kBands; i += kRowThreads) s.count[i] = s.low[i] = s.high[i] = 0;
    gpu::SyncBlock();
  }
  GPU_DEVICE bool Few() const {
    return looked != Looked::kRow && s.staged_size <= static_cast<uint32_t>(kFew);
  }

  // -infinity where there is none.
  GPU_DEVICE float LogitAt(int id) const { return id < p.vocab ? logits[id] : -INFINITY; }

  // Calls body(rank) for this thread's share of what is looked at, of the row for logits from that
  // of `least` up; after_slice(slice) when all threads have gone through the same slice of the row.
  template <class Body, class AfterSlice>
  GPU_DEVICE void ForEach(uint64_t least, Body body, AfterSlice after_slice) const {
    if (looked != Looked::kRow) {
      const int size = static_cast<int>(s.staged_size);
#pragma unroll 1
      for (int i = thread; i < size; i += kRowThreads) body(s.staged[i]);
      return;
    }
    constexpr int kAtOnce = 4, kMine = kSlice / kRowThreads;
    const float floor = fmaxf(LogitOf(least), -kLargestFloat);  // of no logit: NaN
#pragma unroll 1
    for (int first = 0; first < p.slices; first += kAtOnce) {
      float logit[kAtOnce][kMine];  // under way together; the later slices' move up
#pragma unroll
      for (int i = 0; i < kAtOnce * kMine; ++i) {
        logit[i / kMine][i % kMine] = LogitAt(first * kSlice + i * kRowThreads + thread);
      }
#pragma unroll 1
      for (int slice = first; slice < first + kAtOnce && slice < p.slices; ++slice) {
#pragma unroll
        for (int j = 0; j < kMine; ++j) {
          const int id = slice * kSlice + j * kRowThreads + thread;
          if (logit[0][j] >= floor) body(RankOf(logit[0][j], id));
          for (int i = 0; i + 1 < kAtOnce; ++i) logit[i][j] = logit[i + 1][j];
        }
        after_slice(slice);
      }
    }
  }
  template <class Body>
  GPU_DEVICE void ForEach(uint64_t least, Body body) const {
    ForEach(least, body, [](int) {});
  }
  // What the threads have of a slice of the row.
  GPU_DEVICE void AddToSlice(int slice, uint64_t mass) const {
    const uint64_t sum = WaveReduce<kWave>(mass, Sum{});
    if (thread % kWave == 0 && sum > 0) AddMass(slice, sum);
  }

  // From now on the whole row is looked at. With top_k the cut does not lie below `from`.
  GPU_DEVICE void LookAtRow() {
    gpu::SyncBlock();
    looked = Looked::kRow;
    if (settings.top_k == 0 && settings.top_p == 1) return;  // KeepBest is not called
    if (settings.top_k == 0) from = RankOf(LeastKept(), -1);
    if (LogitOf(from) > -kLargestFloat) return;
    uint64_t least = 0;  // with its bits turned
    ForEach(0, [&](uint64_t rank) { least = ~rank > least ? ~rank : least; });
    from = ~BlockReduce<kWave>(least, s.scratch, Greater{});
  }
  // A logit that those below cannot reach the cut from: a whole vocabulary of them weighs half of
  // what top_p leaves out.
  GPU_DEVICE float LeastKept() const {
    const double spare = 0.5 * (1 - double{settings.top_p}) * static_cast<double>(s.total);
    const auto each = static_cast<float>(spare / (double{kMassUnit} * p.vocab));
    const float least = best + log2f(each) / settings.per_logit;
    return settings.min_p > 0 ? fmaxf(least, best + settings.min_depth) : least;
  }

  // The fewest best that are `most` or weigh `enough`: s.cut and s.cut_mass. False, and neither is
  // changed, when there are not so many from `from` up.
  GPU_DEVICE bool KeepBest(uint64_t most, uint64_t enough, bool weigh) const {
    if (Few()) return KeepFew(most, enough);
    uint64_t top = RankOf(best, 0), low = from;
    if (thread == 0) s.before_count = s.before_mass = 0;
#pragma unroll 1
    for (bool first = true;; first = false) {
      const Bands bands(top, low, first);
      if (thread == 0) s.band = -1, s.list_size = 0, s.summed = kNoMass;
      ClearBands();
      ForEach(low, [&](uint64_t rank) {
        if (rank < low || rank > top) return;
        const int band = bands.Of(rank);
        gpu::AtomicAdd(&s.count[band], 1u);
        if (weigh) AddMass(band, MassOf(rank));
      });
      gpu::SyncBlock();
      FindBand(s.before_count, s.before_mass, most, enough);
      gpu::SyncBlock();
      const int found = s.band;
      if (found < 0) return false;
      if (s.band_count <= kMostListed) {
        List(bands, low, top, found);
        CutList(s.listed, static_cast<int>(s.list_size), s.before_count, s.before_mass, most,
                enough);
        gpu::SyncBlock();
        if (looked == Looked::kRow) SumListed();
        return true;
      }
      uint64_t greatest = 0, least = 0;  // the least with its bits turned
      ForEach(low, [&](uint64_t rank) {
        if (rank < low || rank > top || bands.Of(rank) != found) return;
        greatest = rank > greatest ? rank : greatest;
        least = ~rank > least ? ~rank : least;
      });
      top = BlockReduce<kWave>(greatest, s.scratch, Greater{});
      low = ~BlockReduce<kWave>(least, s.scratch, Greater{});
    }
  }
  // The ranks of a band; of a row, what lies above it too, as the masses of slices.
  GPU_DEVICE void List(const Bands& bands, uint64_t low, uint64_t top, int band) const {
    const bool sums = looked == Looked::kRow;
    if (sums) ClearBands();
    uint64_t above = 0;
    ForEach(
        low,
        [&](uint64_t rank) {
          if (rank < low) return;
          const int own = rank > top ? -1 : bands.Of(rank);
          if (own < band && sums) above += MassOf(rank);
          if (own != band) return;
          const uint32_t at = gpu::AtomicAdd(&s.list_size, 1u);
          s.listed[at] = rank;
          s.mass[at] = MassOf(rank);
        },
        [&](int slice) {
          AddToSlice(slice, above);
          above = 0;
        });
    gpu::SyncBlock();
  }
  // Adds those of the list that are kept.
  GPU_DEVICE void SumListed() const {
    if (thread < static_cast<int>(s.list_size) && s.listed[thread] >= s.cut) {
      AddMass(IdOf(s.listed[thread]) / kSlice, s.mass[thread]);
    }
    if (thread == 0) s.summed = s.cut;
    gpu::SyncBlock();
  }
  // KeepBest of few that are staged.
  GPU_DEVICE bool KeepFew(uint64_t most, uint64_t enough) const {
    const int size = static_cast<int>(s.staged_size);
    gpu::SyncBlock();  // all have seen what an earlier call found
    if (thread == 0) s.band = -1;
    if (thread < size) s.mass[thread] = MassOf(s.staged[thread]);
    gpu::SyncBlock();
    CutList(s.staged, size, 0, 0, most, enough);
    gpu::SyncBlock();
    return s.band >= 0;
  }

  // The band in which a limit is reached, with what lies before it.
  GPU_DEVICE void FindBand(uint64_t count, uint64_t mass, uint64_t most, uint64_t enough) const {
    constexpr int kMine = kBands / kRowThreads;
    uint64_t my_count = 0, my_mass = 0, all = 0;
    for (int i = thread * kMine; i < (thread + 1) * kMine; ++i) {
      my_count += s.count[i];
      my_mass += MassAt(i);
    }
    count += BlockSumBefore<kWave>(my_count, s.scratch, &all);
    mass += BlockSumBefore<kWave>(my_mass, s.scratch, &all);
    for (int i = thread * kMine; i < (thread + 1) * kMine; ++i) {
      if (count >= most || mass >= enough) return;
      if (count + s.count[i] >= most || mass + MassAt(i) >= enough) {
        s.band = i, s.band_count = s.count[i];
        s.before_count = count, s.before_mass = mass;
        return;
      }
      count += s.count[i];
      mass += MassAt(i);
    }
  }

  // Of `list`, whose weights are s.mass and before which there are `count` that weigh `mass`, the
  // one at which a limit is reached. Nothing changes when none is.
  GPU_DEVICE void CutList(const uint64_t* list, int size, uint64_t count, uint64_t mass,
                          uint64_t most, uint64_t enough) const {
    if (thread >= size) return;
    const uint64_t rank = list[thread];
#pragma unroll 4
    for (int i = 0; i < size; ++i) {
      const bool better = list[i] > rank;
      count += better ? 1 : 0;
      mass += better ? s.mass[i] : 0;
    }
    const uint64_t through = mass + s.mass[thread];
    if (count >= most || mass >= enough) return;
    if (count + 1 < most && through < enough) return;
    s.cut = rank, s.cut_mass = through, s.band = 0;
  }
};

}  // namespace ashlar::gpu_kernels
