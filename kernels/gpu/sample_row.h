// The second pass of sampling: a block makes an id of what the first pass left of a row. The groups
// say above which logit the cut lies; those of their logits that are no worse are brought into
// shared memory, and the whole row is read again only where these are too many or, by the exact
// rules, too few.
#pragma once

#include "sample_cut.h"

namespace ashlar::gpu_kernels {

template <int kWave>
class RowDraw {
 public:
  GPU_DEVICE RowDraw(const SampleParams& p, RowShared& shared)
      : p_(p),
        s_(shared),
        group_count_(p.slices * kSliceGroups),
        groups_(p.groups + int64_t{gpu::BlockX()} * group_count_),
        cut_{p, shared, Settings(p.draws[gpu::BlockX()], p.vocab),
             p.logits + int64_t{gpu::BlockX()} * p.pitch} {}

  GPU_DEVICE int32_t Draw() {
    gpu::WaitForPrevious();
    const uint64_t best = FindBest();
    cut_.best = LogitOf(best);
    if (!(cut_.best <= kLargestFloat)) return -1;
    if (cut_.settings.greedy) return IdOf(best);
    if (!cut_.settings.Cuts()) return Pick(thread_ < p_.slices ? MassOfSlice() : 0, 0);
    for (bool near = StageNear(); !near || !Cut(); near = true) cut_.LookAtRow();
    if (cut_.Few()) return PickFew();
    if (s_.summed != s_.cut) SumKept();
    return Pick(thread_ < p_.slices ? cut_.MassAt(thread_) : 0, s_.cut);
  }

 private:
  // The row's best, whose id is known of greedy draws alone.
  GPU_DEVICE uint64_t FindBest() {
    constexpr int kAtOnce = 4;
    uint64_t best = 0, least = 0;  // the least with its bits turned
#pragma unroll 1
    for (int first = thread_; first < group_count_; first += kAtOnce * kRowThreads) {
      Group group[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int i = first + j * kRowThreads;
        group[j] = groups_[i < group_count_ ? i : first];
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int i = first + j * kRowThreads;
        if (i >= group_count_) break;
        const uint64_t rank = RankOf(group[j].best, i);
        const uint64_t own = cut_.settings.greedy
                                 ? RankOf(group[j].best, static_cast<int32_t>(group[j].rest))
                                 : rank;
        best = own > best ? own : best;
        if (group[j].best > -kLargestFloat) least = ~rank > least ? ~rank : least;
      }
    }
    if (cut_.settings.top_k > 0 || cut_.settings.top_p < 1) {
      cut_.from = ~BlockReduce<kWave>(least, s_.scratch, Greater{});
    }
    return BlockReduce<kWave>(best, s_.scratch, Greater{});
  }

  // Of the slice whose number is this thread's.
  GPU_DEVICE uint64_t MassOfSlice() const {
    uint64_t mass = 0;
#pragma unroll
    for (int i = 0; i < kSliceGroups; ++i) mass += cut_.MassOf(groups_[thread_ * kSliceGroups + i]);
    return mass;
  }

  // Stages the logits from a bound up that the cut hardly lies below. False when they are too many.
  GPU_DEVICE bool StageNear() {
    const bool counts = cut_.settings.top_k > 0, weighs = cut_.settings.top_p < 1;
    float floor = -kLargestFloat;
    if (thread_ == 0) s_.total = 0;  // unless it is summed below
    // What weighs less than min_p counts in the mass of the top_k all the same.
    if (cut_.settings.min_p > 0 && !(counts && weighs)) floor = cut_.best + cut_.settings.min_depth;
    if (counts) {
      floor = fmaxf(floor, FloorOf<false>());
    } else if (weighs) {
      floor = fmaxf(floor, FloorOf<true>());
    }
    return Stage(floor);
  }

  // A bound that the best of top_k groups reach, and so as many logits, or of groups that weigh all
  // but a part of what top_p may leave out: the lower end of a band of groups' best. Minus infinity
  // when there are not so many.
  template <bool kWeigh>
  GPU_DEVICE float FloorOf() {
    const float scale = (kRowThreads - 1) / (cut_.best - LogitOf(cut_.from));
    s_.count[thread_] = s_.low[thread_] = s_.high[thread_] = 0;
    if (thread_ == 0) s_.band = -1;
    gpu::SyncBlock();
#pragma unroll 2
    for (int i = thread_; i < group_count_; i += kRowThreads) {
      const Group group = groups_[i];
      const int band = static_cast<int>(fminf((cut_.best - group.best) * scale, kRowThreads - 1));
      if constexpr (kWeigh) {
        cut_.AddMass(band, cut_.MassOf(group));
      } else if (group.best > -kLargestFloat) {
        gpu::AtomicAdd(&s_.count[band], 1u);
      }
    }
    gpu::SyncBlock();
    const uint64_t own = kWeigh ? cut_.MassAt(thread_) : s_.count[thread_];
    uint64_t all = 0;
    const uint64_t before = BlockSumBefore<kWave>(own, s_.scratch, &all);
    uint64_t enough = static_cast<uint64_t>(cut_.settings.top_k);
    if constexpr (kWeigh) {
      const double spare = 0.25 * (1 - double{cut_.settings.top_p}) * static_cast<double>(all);
      enough = all - static_cast<uint64_t>(spare);
      if (thread_ == 0) s_.total = all;
    }
    if (before < enough && before + own >= enough) s_.band = thread_;
    gpu::SyncBlock();
    const float lower = static_cast<float>(s_.band) + 1.5f;  // half a band for rounding
    return s_.band < 0 ? -INFINITY : cut_.best - lower / scale;
  }

  // Brings the logits from `floor` up into shared memory. False when they are too many.
  GPU_DEVICE bool Stage(float floor) {
    constexpr int kTeams = kRowThreads / kSliceThreads, kAtOnce = 4;
    static_assert(kMostSlices * kSliceGroups * sizeof(uint16_t) <= sizeof s_.low + sizeof s_.high);
    uint16_t* chosen = reinterpret_cast<uint16_t*>(s_.low);  // and s_.high, which follows it
    gpu::SyncBlock();
    if (thread_ == 0) s_.list_size = s_.staged_size = 0;
    gpu::SyncBlock();
#pragma unroll 1
    for (int first = 0; first < group_count_; first += kRowThreads) {
      const int i = first + thread_;
      const bool has = i < group_count_ && groups_[i].best >= floor;
      const uint32_t at = Reserve(&s_.list_size, has ? 1 : 0);
      if (has) chosen[at] = static_cast<uint16_t>(i);
    }
    gpu::SyncBlock();
    const int count = static_cast<int>(s_.list_size);
    // A group is 8 logits of each of the slice's runs of kVectorStride; a team reads it.
    constexpr int kMine = kGroupLogits / kSliceThreads, kRuns = kSliceThreads / 8;
    const int team = thread_ / kSliceThreads, lane = thread_ % kSliceThreads;
#pragma unroll 1
    for (int first = 0; first < count; first += kAtOnce * kTeams) {
      float logit[kAtOnce][kMine];
      int id[kAtOnce];
      uint32_t mine = 0;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int at = first + i * kTeams + team;
        const int group = chosen[at < count ? at : 0];
        id[i] = group / kSliceGroups * kSlice + group % kSliceGroups * 8 +
                lane / 8 * kVectorStride + lane % 8;
#pragma unroll
        for (int j = 0; j < kMine; ++j) {
          logit[i][j] = at < count ? cut_.LogitAt(id[i] + j * kRuns * kVectorStride) : -INFINITY;
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        for (const float value : logit[i]) mine += value >= floor ? 1 : 0;
      }
      uint32_t at = Reserve(&s_.staged_size, mine);
      if (gpu::Any<kWave>(at > kMostStaged)) break;  // others need not be counted
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
        for (int j = 0; j < kMine; ++j) {
          if (!(logit[i][j] >= floor) || at >= kMostStaged) continue;
          s_.staged[at++] = RankOf(logit[i][j], id[i] + j * kRuns * kVectorStride);
        }
      }
    }
    gpu::SyncBlock();
    cut_.looked = Looked::kStaged;
    cut_.from = RankOf(floor, -1);
    return s_.staged_size <= kMostStaged;
  }
  // Adds `count` to *size, and returns what was there before this thread's. Of the whole wave.
  GPU_DEVICE static uint32_t Reserve(uint32_t* size, uint32_t count) {
    const uint32_t through = WaveSumThrough<kWave>(count);
    uint32_t at = 0;
    if (gpu::ThreadX() % kWave == kWave - 1) at = gpu::AtomicAdd(size, through);
    return gpu::Shuffle<kWave>(at, kWave - 1) + through - count;
  }

  // Sets s_.cut, the worst rank that is kept. False when it may lie below what is looked at; of the
  // whole row, a limit that rounding leaves unreached cuts nothing.
  GPU_DEVICE bool Cut() {
    const bool whole = cut_.looked == Looked::kRow;
    gpu::SyncBlock();
    if (thread_ == 0) s_.cut = whole ? 1 : 0, s_.cut_mass = s_.total, s_.summed = kNoMass;
    gpu::SyncBlock();
    const uint64_t most =
        cut_.settings.top_k > 0 ? static_cast<uint64_t>(cut_.settings.top_k) : kNoMass;
#pragma unroll 1
    for (int step = 0; step < 2; ++step) {
      const bool by_mass = step == 1;
      if (by_mass ? !(cut_.settings.top_p < 1) : cut_.settings.top_k == 0) continue;
      uint64_t limit = kNoMass;
      if (by_mass) {
        const double enough = cut_.settings.top_p * static_cast<double>(s_.cut_mass);
        limit = enough > 1 ? static_cast<uint64_t>(enough) : 1;
      }
      const bool found = cut_.KeepBest(most, limit, cut_.settings.top_p < 1);
      // Their mass is then not known.
      if (!found && !by_mass && cut_.settings.top_p < 1 && !whole) return false;
    }
    uint64_t cut = s_.cut;
    if (cut_.settings.min_p > 0) {
      const uint64_t enough = RankOf(cut_.best + cut_.settings.min_depth, -1);
      if (enough > cut) cut = enough;
    }
    gpu::SyncBlock();
    if (thread_ == 0) s_.cut = cut;
    gpu::SyncBlock();
    return whole || cut >= cut_.from;
  }

  // The mass that is kept of each slice, in low and high.
  GPU_DEVICE void SumKept() const {
    cut_.ClearBands();
    const uint64_t cut = s_.cut;
    uint64_t mine = 0;
    cut_.ForEach(
        cut,
        [&](uint64_t rank) {
          if (rank < cut) return;
          if (cut_.looked == Looked::kRow) {
            mine += cut_.MassOf(rank);
          } else {
            cut_.AddMass(IdOf(rank) / kSlice, cut_.MassOf(rank));
          }
        },
        [&](int slice) {
          cut_.AddToSlice(slice, mine);
          mine = 0;
        });
    gpu::SyncBlock();
  }

  // Where the draw's uniform falls in a mass.
  GPU_DEVICE uint64_t Target(uint64_t all) const {
    const double uniform = p_.draws[gpu::BlockX()].uniform;
    const uint64_t target = static_cast<uint64_t>(uniform * static_cast<double>(all));
    return target < all ? target : all - 1;
  }

  // The first id at which the mass from `cut` up passes the draw's uniform; thread i brings the
  // mass of slice i.
  GPU_DEVICE int32_t Pick(uint64_t mine, uint64_t cut) const {
    uint64_t all = 0, before = BlockSumBefore<kWave>(mine, s_.scratch, &all);
    uint64_t target = Target(all);
    if (before <= target && target < before + mine) s_.band = thread_, s_.before_mass = before;
    gpu::SyncBlock();
    constexpr int kMine = kSlice / kRowThreads;
    const int first = s_.band * kSlice + kMine * thread_;
    target -= s_.before_mass;
    if (thread_ == 0) s_.picked = first;  // stays where rounding left the slice no mass
    uint64_t mass[kMine];
    mine = 0;
#pragma unroll
    for (int j = 0; j < kMine; ++j) {
      const float logit = cut_.LogitAt(first + j);
      const bool kept = logit > -INFINITY && RankOf(logit, first + j) >= cut;
      mass[j] = kept ? cut_.LogitMass(logit) : 0;
      mine += mass[j];
    }
    before = BlockSumBefore<kWave>(mine, s_.scratch, &all);
    if (target >= all) target = all - 1;  // sums of a slice differ by rounding
    if (before <= target && target < before + mine) {
      int skipped = 0;  // of this thread's ids
#pragma unroll
      for (int j = 0; j < kMine; ++j) {
        before += mass[j];
        skipped += before <= target ? 1 : 0;
      }
      s_.picked = first + skipped;
    }
    gpu::SyncBlock();
    return s_.picked;
  }
  // The same, of few that are staged.
  GPU_DEVICE int32_t PickFew() const {
    const int size = static_cast<int>(s_.staged_size);
    const uint64_t cut = s_.cut;
    const uint64_t own = thread_ < size ? s_.staged[thread_] : 0;
    const uint64_t mine = own >= cut && thread_ < size ? cut_.MassOf(own) : 0;
    gpu::SyncBlock();
    if (thread_ < size) s_.mass[thread_] = mine;
    gpu::SyncBlock();
    if (thread_ < size) {
      uint64_t all = 0, before = 0;
#pragma unroll 4
      for (int i = 0; i < size; ++i) {
        all += s_.mass[i];
        before += IdOf(s_.staged[i]) < IdOf(own) ? s_.mass[i] : 0;
      }
      const uint64_t target = Target(all);
      if (before <= target && target < before + mine) s_.picked = IdOf(own);
    }
    gpu::SyncBlock();
    return s_.picked;
  }

  const SampleParams& p_;
  RowShared& s_;
  const int thread_ = gpu::ThreadX();
  const int group_count_;
  const Group* groups_;
  RowCut<kWave> cut_;
};

template <int kWave>
GPU_KERNEL void GPU_BOUNDS(kRowThreads, 2) RowKernel(const SampleParams p) {
  gpu::ReleaseNext();
  if constexpr (gpu::RunsWave<kWave>()) {
    RowDraw<kWave> draw(p, *reinterpret_cast<RowShared*>(gpu::SharedMemory()));
    const int32_t id = draw.Draw();
    if (gpu::ThreadX() == 0) p.ids[gpu::BlockX()] = id;
  } else {
    gpu::WaitForPrevious();
  }
}

}  // namespace ashlar::gpu_kernels
