// The kernel of hopper_matmul.h. A thread fills a ring of stages, each a step of k of one tile of
// the weight and of all tokens; two warpgroups multiply. The ring is filled with weights before the
// kernels ahead have ended, and with x after.
#pragma once

#include "hopper_cluster.h"
#include "hopper_matmul_finish.h"
#include "hopper_matmul_x.h"
#include "hopper_products.h"
#include "hopper_shared.h"

namespace ashlar::hopper {

#if defined(ASHLAR_HOPPER)

template <class Shape>
struct StagesOfX {
  alignas(1024) char stage[Shape::kStages][Shape::kXBytes];
};

template <class Shape>
struct MatmulShared {
  alignas(1024) char weight[Shape::kStages][Shape::kWeightBytes];
  std::conditional_t<Shape::kResident, ResidentX, StagesOfX<Shape>> x;
  // full: the copy engine has written; empty: the consumers have read.
  Barrier full[Shape::kStages], empty[Shape::kStages];

  GPU_DEVICE void Init() {
    for (int i = 0; i < Shape::kStages; ++i) {
      InitBarrier(&full[i], 1);
      InitBarrier(&empty[i], 4 * Shape::kConsumers * Shape::kCluster);  // a lane of each warp
    }
    FenceBarriers();
  }
};

// The line of units and which cluster has which. A unit is one step of a tile for each of the
// cluster's blocks.
class UnitLine {
 public:
  GPU_DEVICE UnitLine(const MatmulParams& p, int cluster)
      : units_((p.tiles + cluster - 1) / cluster * p.depth), clusters_(gpu::GridX() / cluster) {}
  GPU_DEVICE int First(int at) const { return static_cast<int>(at * units_ / clusters_); }
  GPU_DEVICE int Owner(int unit) const {
    return static_cast<int>(((unit + 1) * clusters_ - 1) / units_);
  }

 private:
  uint32_t units_, clusters_;  // their product fits too
};

// Where a unit lies.
struct UnitPlace {
  int tile, step, depth;  // tile: of the cluster
  GPU_DEVICE UnitPlace(int unit, int all) : tile(unit / all), step(unit % all), depth(all) {}
  GPU_DEVICE void Next() {
    if (++step == depth) step = 0, ++tile;
  }
};

template <int kCluster>
GPU_DEVICE int RankIn() {
  if constexpr (kCluster == 1) return 0;
  return ClusterRank();
}

template <class T, class Shape>
class MatmulProducer {
 public:
  GPU_DEVICE MatmulProducer(MatmulShared<Shape>& shared, const CUtensorMap* weight,
                            const CUtensorMap* x, const MatmulParams& p)
      : s_(shared), weight_(weight), x_(x), p_(p) {}

  GPU_DEVICE void Run() {
    const UnitLine line(p_, Shape::kCluster);
    const int cluster = gpu::BlockX() / Shape::kCluster;
    const int first = line.First(cluster), end = line.First(cluster + 1);
    const int early = min(Shape::kStages, end - first);
    UnitPlace place(first, p_.depth), late = place;
    for (int stage = 0; stage < early; ++stage, place.Next()) CopyWeight(stage, place);
    gpu::WaitForPrevious();
    for (int stage = 0; stage < early; ++stage, late.Next()) CopyX(stage, late);
    Ring<Shape::kStages> ring;
    for (int unit = first + early; unit < end; ++unit, place.Next(), ring.Next()) {
      Wait(&s_.empty[ring.stage], ring.parity);
      CopyWeight(ring.stage, place);
      CopyX(ring.stage, place);
    }
  }

 private:
  static constexpr int kStepColumns = kRowBytes / static_cast<int>(sizeof(T));

  GPU_DEVICE void CopyWeight(int stage, const UnitPlace& at) {
    ArriveExpecting(&s_.full[stage], Shape::kStageBytes);
    // In groups of 8 rows; a tile of gates and ups has half as many of each.
    const int groups = kTileRows / 8 >> p_.gated;
    CopyBox(s_.weight[stage], weight_, &s_.full[stage], at.step * kStepColumns, 0, 0,
            (at.tile * Shape::kCluster + rank_) * groups);
  }
  // Every block of a cluster brings a share of x to all.
  GPU_DEVICE void CopyX(int stage, const UnitPlace& at) {
    if constexpr (Shape::kResident) {
      return;
    } else if constexpr (Shape::kCluster == 1) {
      CopyBox(s_.x.stage[stage], x_, &s_.full[stage], at.step * kStepColumns, 0);
    } else {
      constexpr int kShare = Shape::kTokens / Shape::kCluster;
      CopyBoxTo(s_.x.stage[stage] + rank_ * kShare * kRowBytes, x_, &s_.full[stage],
                (1u << Shape::kCluster) - 1, at.step * kStepColumns, rank_ * kShare);
    }
  }

  MatmulShared<Shape>& s_;
  const CUtensorMap *const weight_, *const x_;
  const MatmulParams& p_;
  const int rank_ = RankIn<Shape::kCluster>();
};

template <class T, class Shape>
class MatmulConsumer {
 public:
  GPU_DEVICE MatmulConsumer(MatmulShared<Shape>& shared, const MatmulParams& p)
      : s_(shared), p_(p) {}

  GPU_DEVICE void Run() {
    gpu::WaitForPrevious();
    if constexpr (Shape::kResident) {
      XStager<T, Shape::kConsumerThreads>(s_.x, p_).Run();
      SyncConsumers();
    }
    const int cluster = gpu::BlockX() / Shape::kCluster;
    const int end = line_.First(cluster + 1);
    for (int unit = line_.First(cluster); unit < end;) {
      const UnitPlace at(unit, p_.depth);
      const int steps = min(p_.depth - at.step, end - unit);
      Multiply(at.step, steps);
      const Quads quads = steps == p_.depth ? Quads{0, kQuads} : AddUp(at);
      MatmulFinish<T, Shape>(p_, sum_, XScales(), quads).Run(at.tile * Shape::kCluster + rank_);
      unit += steps;
    }
  }

 private:
  static constexpr int kTokens = Shape::kTokens, kQuads = kTokens / 8;

  GPU_DEVICE void Multiply(int first, int steps) {
    int last = 0;
    Pin(sum_);
    for (int i = 0; i < steps; ++i) {
      Wait(&s_.full[ring_.stage], ring_.parity);
      const uint64_t a = Operand(s_.weight[ring_.stage] + warpgroup_ * 64 * kRowBytes, 1024, 0);
      const uint64_t b = XOperand(first + i);
      const int b_step = Shape::kResident ? 32 * p_.tokens : 32;
      Begin();
#pragma unroll
      for (int j = 0; j < kRowBytes / 32; ++j) {
        Product<kTokens>::template Shared<T>(sum_, Advance(a, 32 * j), Advance(b, b_step * j),
                                             i > 0 || j > 0);
      }
      Commit();
      if (i > 0) {
        WaitProducts<1>();
        Release(last);
      }
      last = ring_.stage;
      ring_.Next();
    }
    WaitProducts<0>();
    Pin(sum_);
    Release(last);
  }

  GPU_DEVICE uint64_t XOperand(int step) const {
    if constexpr (Shape::kResident) {
      return PlainOperand(s_.x.values + step * kRowBytes * p_.tokens, 16 * p_.tokens, 0);
    } else {
      return Operand(s_.x.stage[ring_.stage], 1024, 0);
    }
  }

  GPU_DEVICE const float* XScales() const {
    if constexpr (Shape::kResident) return s_.x.scale;
    return p_.x_scales;
  }

  GPU_DEVICE void Release(int stage) {
    if constexpr (Shape::kCluster == 1) {
      if (lane_ == 0) Arrive(&s_.empty[stage]);
    } else {
      if (lane_ < Shape::kCluster) ArriveAt(&s_.empty[stage], lane_);
    }
  }

  GPU_DEVICE float4* PartOf(int block) const {
    return reinterpret_cast<float4*>(p_.parts) + int64_t{block} * kQuads * Shape::kConsumerThreads +
           gpu::ThreadX();
  }

  // What this block finishes of a tile that clusters share: all when it has the first step of k. Of
  // clusters that share every tile alike, and so end together, each finishes some.
  GPU_DEVICE Quads OwnQuads(int share) const {
    if (p_.shares == 0) return {0, share == 0 ? kQuads : 0};
    return {share * kQuads / p_.shares, (share + 1) * kQuads / p_.shares};
  }

  // Hands its sums of a shared tile to those who finish them, and adds theirs to what it finishes,
  // in an order that does not change.
  GPU_DEVICE Quads AddUp(const UnitPlace& at) {
    const int first = line_.Owner(at.tile * p_.depth);
    const int last = line_.Owner((at.tile + 1) * p_.depth - 1);
    const int own = gpu::BlockX() / Shape::kCluster, shares = last - first + 1;
    const Quads quads = OwnQuads(own - first);
    float4* const part = PartOf(gpu::BlockX());
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      if (quads.Has(i)) continue;
      part[i * Shape::kConsumerThreads] =
          make_float4(sum_[4 * i], sum_[4 * i + 1], sum_[4 * i + 2], sum_[4 * i + 3]);
    }
    SyncConsumers();
    uint32_t* const arrived = p_.arrived + first * Shape::kCluster + rank_;
    if (gpu::ThreadX() == 0) {
      gpu::AddInOrder(arrived, 1);
      if (quads.first < quads.end) Await(arrived, shares);
    }
    if (quads.first == quads.end) return quads;
    SyncConsumers();
    for (int cluster = first; cluster <= last; ++cluster) {
      if (cluster == own) continue;
      const float4* const part = PartOf(cluster * Shape::kCluster + rank_);
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        if (!quads.Has(i)) continue;
        const float4 more = __ldcg(part + i * Shape::kConsumerThreads);
        sum_[4 * i] += more.x, sum_[4 * i + 1] += more.y;
        sum_[4 * i + 2] += more.z, sum_[4 * i + 3] += more.w;
      }
    }
    return quads;
  }

  // Until all have arrived. The last of those who wait leaves the counter as it was.
  GPU_DEVICE void Await(uint32_t* arrived, int shares) const {
    const int waiters = p_.shares == 0 ? 1 : min(p_.shares, kQuads);
    AwaitCount(arrived, static_cast<uint32_t>(shares));
    if (gpu::AddInOrder(arrived, 1) == static_cast<uint32_t>(shares + waiters - 1)) *arrived = 0;
  }

  // Barrier 0 is SyncBlock's.
  GPU_DEVICE static void SyncConsumers() { SyncNamed(1, Shape::kConsumerThreads); }

  MatmulShared<Shape>& s_;
  const MatmulParams& p_;
  const UnitLine line_{p_, Shape::kCluster};
  const int rank_ = RankIn<Shape::kCluster>();
  const int warpgroup_ = gpu::ThreadX() / 128, warp_ = gpu::ThreadX() / 32 % 4;
  const int lane_ = gpu::ThreadX() % 32;
  Ring<Shape::kStages> ring_;
  float sum_[kTokens / 2];
};

#endif

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    MatmulKernel(const __grid_constant__ CUtensorMap weight_map,
                 const __grid_constant__ CUtensorMap x_map,
                 const __grid_constant__ MatmulParams params) {
#if defined(ASHLAR_HOPPER)
  const auto place = reinterpret_cast<uintptr_t>(gpu::SharedMemory());
  static_assert(sizeof(MatmulShared<Shape>) + 1024 <= Shape::kSharedBytes);
  auto& shared = *reinterpret_cast<MatmulShared<Shape>*>((place + 1023) / 1024 * 1024);
  gpu::ReleaseNext();
  if (gpu::ThreadX() == 0) {
    PrefetchMap(&weight_map);
    PrefetchMap(&x_map);
    shared.Init();
  }
  Shape::kCluster == 1 ? gpu::SyncBlock() : SyncCluster();
  if (gpu::ThreadX() < Shape::kConsumerThreads) {
    MatmulConsumer<T, Shape>(shared, params).Run();
  } else if (gpu::ThreadX() == Shape::kConsumerThreads) {
    MatmulProducer<T, Shape>(shared, &weight_map, &x_map, params).Run();
  } else {
    gpu::WaitForPrevious();
  }
  // No block ends while others of its cluster may still copy into it or arrive at its barriers.
  if constexpr (Shape::kCluster > 1) SyncCluster();
#endif
}

template <class T>
gpu::Error LaunchMatmul(const MatmulLaunch& launch, const MatmulParams& params) {
  const auto with = [&](auto shape) {
    using Shape = decltype(shape);
    const auto kernel = MatmulKernel<T, Shape>;
    if constexpr (Shape::kCluster == 1) {
      return gpu::Launch(launch.stream, {launch.blocks}, Shape::kThreads, Shape::kSharedBytes,
                         kernel, launch.weight_map, launch.x_map, params);
    } else {
      return LaunchClusters(launch.stream, Shape::kCluster, {launch.blocks}, Shape::kThreads,
                            Shape::kSharedBytes, kernel, launch.weight_map, launch.x_map, params);
    }
  };
  if (params.resident) return with(MatmulShape<8, true>{});
  switch (TokenColumns(params.tokens)) {
    case 8:
      return with(MatmulShape<8, false>{});
    case 16:
      return with(MatmulShape<16, false>{});
    case 32:
      return with(MatmulShape<32, false>{});
    case 64:
      return with(MatmulShape<64, false>{});
    case 128:
      return with(MatmulShape<128, false>{});
    default:
      return with(MatmulShape<256, false>{});
  }
}

}  // namespace ashlar::hopper
