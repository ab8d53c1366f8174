// The kernel of hopper_matmul.h. A thread fills a ring of stages, each a step of k of one tile of
// the weight and of all tokens; two warpgroups multiply. The ring is filled with weights
// before the kernels ahead have ended, and with x after.
#pragma once

#include "hopper_matmul_finish.h"
#include "hopper_products.h"
#include "hopper_shared.h"

namespace ashlar::hopper {

#if defined(ASHLAR_HOPPER)

template <class Shape>
struct MatmulShared {
  alignas(1024) char weight[Shape::kStages][Shape::kWeightBytes];
  alignas(1024) char x[Shape::kStages][Shape::kXBytes];
  alignas(16) MatmulSums<Shape> sums;
  // full: the copy engine has written; empty: the consumers have read.
  Barrier full[Shape::kStages], empty[Shape::kStages];

  GPU_DEVICE void Init() {
    for (int i = 0; i < Shape::kStages; ++i) {
      InitBarrier(&full[i], 1);
      InitBarrier(&empty[i], 4 * Shape::kConsumers);  // a lane of each warp
    }
    FenceBarriers();
  }
};

template <class T, class Shape>
class MatmulProducer {
 public:
  GPU_DEVICE MatmulProducer(MatmulShared<Shape>& shared, const CUtensorMap* weight,
                            const CUtensorMap* x, const MatmulParams& p)
      : s_(shared), weight_(weight), x_(x), p_(p) {}

  GPU_DEVICE void Run() {
    const UnitLine line(p_);
    const int first = line.First(gpu::BlockX()), end = line.First(gpu::BlockX() + 1);
    const int early = min(Shape::kStages, end - first);
    UnitPlace place(first, p_.depth), late = place;
#pragma unroll 1
    for (int stage = 0; stage < early; ++stage, place.Next()) CopyWeight(stage, place);
    gpu::WaitForPrevious();
#pragma unroll 1
    for (int stage = 0; stage < early; ++stage, late.Next()) CopyX(stage, late);
    gpu::ReleaseNext();
    Ring<Shape::kStages> ring;
#pragma unroll 1
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
            at.tile * groups);
  }
  GPU_DEVICE void CopyX(int stage, const UnitPlace& at) {
    CopyBox(s_.x[stage], x_, &s_.full[stage], at.step * kStepColumns, 0);
  }

  MatmulShared<Shape>& s_;
  const CUtensorMap *const weight_, *const x_;
  const MatmulParams& p_;
};

template <class T, class Shape>
class MatmulConsumer {
 public:
  GPU_DEVICE MatmulConsumer(MatmulShared<Shape>& shared, const MatmulParams& p)
      : s_(shared), p_(p) {}

  GPU_DEVICE void Run() {
    const int first = line_.First(gpu::BlockX()), end = line_.First(gpu::BlockX() + 1);
    const int tile_rows = kTileRows >> p_.gated, first_row = first / p_.depth * tile_rows;
    const int end_row = min(p_.rows, ((end - 1) / p_.depth + 1) * tile_rows);
    PrefetchRows(p_, first_row, end_row);
    gpu::WaitForPrevious();
    PrefetchResidual<Shape>(p_, first_row, end_row);
#pragma unroll 1
    for (int unit = first; unit < end;) {
      const UnitPlace at(unit, p_.depth);
      const int steps = min(p_.depth - at.step, end - unit);
      Multiply(steps);
      StoreSums();
      MatmulFinish<T, Shape>(p_, line_, s_.sums, at.tile).Run();
      unit += steps;
    }
  }

 private:
  static constexpr int kTokens = Shape::kTokens;

  GPU_DEVICE void Multiply(int steps) {
    int last = 0;
    Pin(sum_);
#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
      Wait(&s_.full[ring_.stage], ring_.parity);
      const uint64_t a = Operand(s_.weight[ring_.stage] + warpgroup_ * 64 * kRowBytes, 1024, 0);
      const uint64_t b = Operand(s_.x[ring_.stage], 1024, 0);
      Begin();
#pragma unroll
      for (int j = 0; j < kRowBytes / 32; ++j) {
        Product<kTokens>::template Shared<T>(sum_, Advance(a, 32 * j), Advance(b, 32 * j),
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

  // See hopper_products.h for where they are.
  GPU_DEVICE void StoreSums() {
    constexpr int kRow = kTileRows + 4;
    float* const to = s_.sums.value[2 * (lane_ % 4)] + warpgroup_ * 64 + warp_ * 16 + lane_ / 4;
    SyncConsumers();  // the last tile's have been read
#pragma unroll
    for (int i = 0; i < kTokens / 2; ++i) {
      to[(i / 4 * 8 + i % 2) * kRow + i / 2 % 2 * 8] = sum_[i];
    }
    SyncConsumers();
  }

  // Barrier 0 is SyncBlock's.
  GPU_DEVICE static void SyncConsumers() { SyncNamed(1, Shape::kConsumerThreads); }

  GPU_DEVICE void Release(int stage) {
    if (lane_ == 0) Arrive(&s_.empty[stage]);
  }

  MatmulShared<Shape>& s_;
  const MatmulParams& p_;
  const UnitLine line_{p_};
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
  char* const memory = gpu::SharedMemory();
  static_assert(sizeof(MatmulShared<Shape>) + 1024 <= Shape::kSharedBytes);
  auto& shared =
      *reinterpret_cast<MatmulShared<Shape>*>(memory + (-gpu::SharedAddress(memory) & 1023));
  if (gpu::ThreadX() == 0) {
    PrefetchMap(&weight_map);
    PrefetchMap(&x_map);
    shared.Init();
  }
  gpu::SyncBlock();
  if (gpu::ThreadX() < Shape::kConsumerThreads) {
    MatmulConsumer<T, Shape>(shared, params).Run();
  } else {
    if (gpu::ThreadX() == Shape::kConsumerThreads) {
      MatmulProducer<T, Shape>(shared, &weight_map, &x_map, params).Run();
    }
    gpu::SyncWave<32>();  // that no lane waits for the kernels ahead before weights are on their
                          // way
    gpu::WaitForPrevious();
  }
#endif
}

template <class T>
gpu::Error LaunchMatmul(const MatmulLaunch& launch, const MatmulParams& params) {
  const auto with = [&](auto shape) {
    using Shape = decltype(shape);
    return gpu::Launch(launch.stream, {launch.blocks}, Shape::kThreads, Shape::kSharedBytes,
                       MatmulKernel<T, Shape>, launch.weight_map, launch.x_map, params);
  };
  switch (TokenColumns(params.tokens)) {
    case 8:
      return with(MatmulShape<8>{});
    case 16:
      return with(MatmulShape<16>{});
    case 32:
      return with(MatmulShape<32>{});
    default:
      return with(MatmulShape<64>{});
  }
}

}  // namespace ashlar::hopper
