// Launches of the kernel that prepares and attends for one token.
#include <memory>

#include "gpu/platform.h"
#include "hopper_step.h"

namespace ashlar::gpu_kernels {
namespace {

template <class Stored, int kHeadDim, int kRanks>
gpu::Error LaunchRanks(gpu::Stream stream, const hopper::StepParams& p) {
  using Shape = hopper::StepShape<Stored, kHeadDim, kRanks>;
  const gpu::Grid grid{static_cast<unsigned>(kRanks * p.prepare.kv.kv_heads)};
  return hopper::LaunchClusters(stream, kRanks, grid, Shape::kThreads,
                                sizeof(typename Shape::Shared), false,
                                hopper::StepKernel<Stored, kHeadDim, kRanks>, p);
}

template <class Stored, int kHeadDim>
gpu::Error LaunchHeadDim(gpu::Stream stream, int ranks, const hopper::StepParams& p) {
  return ranks == 8 ? LaunchRanks<Stored, kHeadDim, 8>(stream, p)
                    : LaunchRanks<Stored, kHeadDim, 4>(stream, p);
}

template <class Stored>
gpu::Error Launch(gpu::Stream stream, int ranks, const hopper::StepParams& p) {
  return p.prepare.kv.head_dim == 128 ? LaunchHeadDim<Stored, 128>(stream, ranks, p)
                                      : LaunchHeadDim<Stored, 64>(stream, ranks, p);
}

class HopperStep final : public FusedStep {
 public:
  static std::unique_ptr<FusedStep> Open(int device) {
    gpu::Facts facts;
    if (!hopper::RunsOn(device) || gpu::ReadFacts(device, &facts) != gpu::kSuccess) return nullptr;
    std::unique_ptr<HopperStep> step(new HopperStep);
    step->multiprocessors_ = facts.multiprocessors;
    return step;
  }

  bool Takes(const ashlar_qkv_prepare& a) const override {
    const ashlar_kv_view& kv = a.kv;
    return a.qkv.dtype == ASHLAR_BF16 && a.q_out.dtype == ASHLAR_BF16 &&
           (kv.dtype == ASHLAR_BF16 || kv.dtype == ASHLAR_F8_E4M3) &&
           (kv.head_dim == 64 || kv.head_dim == 128) &&
           a.q_out.shape[1] <= int64_t{hopper::kMostStepGroup} * kv.kv_heads &&
           Ranks(kv.kv_heads) > 0;
  }

  gpu::Error Launch(gpu::Stream stream, const ashlar_qkv_prepare& prepare,
                    const AttentionParams& attention) override {
    const hopper::StepParams p{prepare, attention};
    const int ranks = Ranks(prepare.kv.kv_heads);
    return prepare.kv.dtype == ASHLAR_BF16 ? gpu_kernels::Launch<BF16>(stream, ranks, p)
                                           : gpu_kernels::Launch<F8>(stream, ranks, p);
  }

 private:
  // Blocks of a KV head; 0 when there are too few or too many heads for the device.
  int Ranks(int kv_heads) const {
    for (int ranks = 8; ranks >= 4; ranks /= 2) {
      const int blocks = ranks * kv_heads;
      if (blocks <= multiprocessors_) return 3 * blocks >= multiprocessors_ ? ranks : 0;
    }
    return 0;
  }

  int multiprocessors_ = 0;
};

}  // namespace

std::unique_ptr<FusedStep> OpenFusedStep(int device) { return HopperStep::Open(device); }

}  // namespace ashlar::gpu_kernels
