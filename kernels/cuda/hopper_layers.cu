// Which steps of whole layers a Hopper device carries out in one launch.
#include "gpu/platform.h"
#include "hopper_layers_attention.h"
#include "hopper_layers_launch.h"
#include "hopper_layers_layout.h"

namespace ashlar::gpu_kernels {
namespace {

// Blocks that attend for one token's KV head. More finish sooner; fewer leave others to the heads
// of further tokens.
template <class W>
using One = hopper::LayersOf<W, 8>;
template <class W>
using Several = hopper::LayersOf<W, 4>;

// Calls body(the kernels for such a step).
template <class Body>
auto WithKernels(const LayersParams& p, Body body) {
  const bool f8 = p.weights == ASHLAR_F8_E4M3;
  if (p.tokens > 1) return f8 ? body(Several<F8>{}) : body(Several<BF16>{});
  return f8 ? body(One<F8>{}) : body(One<BF16>{});
}

class HopperLayers final : public FusedLayers {
 public:
  static std::unique_ptr<FusedLayers> Open(int device) {
    gpu::Facts facts;
    if (!hopper::RunsOn(device) || gpu::ReadFacts(device, &facts) != gpu::kSuccess) return nullptr;
    std::unique_ptr<HopperLayers> layers(new HopperLayers);
    const int64_t shared = facts.shared_bytes;
    const int eights = One<BF16>::CountClusters(shared),
              fours = Several<BF16>::CountClusters(shared);
    for (const int blocks : {8 * eights, 4 * fours}) {
      // With fewer, too much of the device would be idle.
      if (5 * blocks < 4 * facts.multiprocessors || blocks > hopper::kMostWordBlocks) {
        return nullptr;
      }
    }
    layers->one_ = {static_cast<unsigned>(eights), shared};
    layers->several_ = {static_cast<unsigned>(fours), shared};
    return layers;
  }

  int64_t Words() const override { return hopper::kWordMemory; }

  bool Takes(const LayersParams& p) const override {
    return hopper::RefusesProducts(p) == nullptr && hopper::TakesAttention(p) && IsFaster(p) &&
           WithKernels(p, [&](auto kernels) { return kernels.Fits(LaunchOf(p), p); });
  }

  gpu::Error Launch(gpu::Stream stream, const LayersParams& p) override {
    return WithKernels(p, [&](auto kernels) { return kernels.Launch(LaunchOf(p), stream, p); });
  }

 private:
  const hopper::LayersLaunch& LaunchOf(const LayersParams& p) const {
    return p.tokens > 1 ? several_ : one_;  // as WithKernels
  }

  // Than the layers' ops, as measured on an H200 (docs/benchmarks.md): memory brings no weights
  // while blocks attend for several tokens. In a captured step max_context is what its tables
  // reach, twice the context at most. The host executor, which only checks, runs all.
  static bool IsFaster([[maybe_unused]] const LayersParams& p) {
#if defined(ASHLAR_GPU_HOST)
    return true;
#else
    constexpr int64_t kMostKeys = 16384, kLargeLayer = int64_t{100} << 20;
    if (p.tokens == 1) return true;
    if (int64_t{p.tokens} * p.attention.max_context > kMostKeys) return false;
    if (p.tokens == 2) return true;
    if (p.weights != ASHLAR_BF16) return false;
    int64_t bytes = 0;
    for (const ProductShape& shape : p.product) bytes += shape.rows * shape.pitch * 2;
    return bytes >= kLargeLayer;
#endif
  }

  hopper::LayersLaunch one_{}, several_{};
};

}  // namespace

std::unique_ptr<FusedLayers> OpenFusedLayers(int device) { return HopperLayers::Open(device); }

}  // namespace ashlar::gpu_kernels
