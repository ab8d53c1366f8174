// Launches of the Hopper product kernel: tensor maps of the weight and of x, and how many blocks
// share the work.
#include <algorithm>

#include "gpu/number.h"
#include "gpu/platform.h"
#include "gpu/skinny_product.h"
#include "hopper_launch.h"
#include "hopper_map.h"
#include "hopper_matmul.h"

namespace ashlar::gpu_kernels {
namespace {

using hopper::Encode, hopper::Extents, hopper::MakeMap;

int64_t Up(int64_t value, int64_t step) { return (value + step - 1) / step; }

// From the gates to the ups.
int64_t UpDistance(const FusedProductParams& p) {
  return static_cast<const char*>(p.weight[1]) - static_cast<const char*>(p.weight[0]);
}

// Columns, 8 rows, gates and ups, groups of 8 rows: those of gates and of ups lie in turn.
bool MapWeight(Encode encode, const FusedProductParams& p, CUtensorMap* map) {
  const int bytes = ElementBytes(p.type);
  const auto row = static_cast<cuuint64_t>(p.pitch * bytes);
  const auto kinds = p.gated != 0 ? 2u : 1u;
  const Extents e{4,
                  {cuuint64_t(p.pitch), 8, kinds, cuuint64_t(Up(p.rows, 8))},
                  {row, p.gated != 0 ? cuuint64_t(UpDistance(p)) : 8 * row, 8 * row},
                  {cuuint32_t(hopper::kRowBytes / bytes), 8, kinds, hopper::kTileRows / 8 / kinds}};
  return MakeMap(encode, p.type, p.weight[0], e, map);
}

bool MapX(Encode encode, const FusedProductParams& p, CUtensorMap* map) {
  const Extents e{2,
                  {cuuint64_t(p.cols), cuuint64_t(p.tokens)},
                  {cuuint64_t(p.x_row_bytes)},
                  {cuuint32_t(hopper::kRowBytes / ElementBytes(p.type)),
                   cuuint32_t(hopper::TokenColumns(p.tokens))}};
  return MakeMap(encode, p.type, p.x, e, map);
}

// How many blocks share the work: of each tile where all share alike, else 0, and how long the line
// of units is that they divide evenly.
struct Split {
  int64_t blocks, of_tile, line;
};
// Memory is the bound, which fewer blocks than multiprocessors reach too: when a block's tiles are
// its own, or its tile's share, it has less to add up. A long way through the weight, or with much
// of x beside it, is shorter on all of them.
Split SplitWork(int64_t tiles, int64_t depth, int64_t most, int tokens) {
  const int64_t least = tokens > 16 ? 4 : 2;  // units of a share: fewer are not worth adding up
  most = std::min(std::max<int64_t>(tiles * depth / least, 1), most);
  const int64_t of_tile = most / tiles, of_block = Up(tiles, most), blocks = Up(tiles, of_block);
  if (10 * of_tile * tiles >= 7 * most) return {of_tile * tiles, of_tile, tiles * depth};
  const bool is_short = tokens <= 32 && of_block * depth <= 64;
  if (10 * blocks >= (is_short ? 7 : 9) * most) return {blocks, 1, blocks * of_block * depth};
  return {most, 0, tiles * depth};
}

hopper::MatmulParams KernelParams(const FusedProductParams& p) {
  hopper::MatmulParams h{};
  static_cast<FusedProductParams&>(h) = p;
  const auto aligned = [&](const void* data, int64_t row_bytes) {
    const int64_t four_bytes = 4 * ElementBytes(p.out_dtype);
    return reinterpret_cast<uintptr_t>(data) % four_bytes == 0 && row_bytes % four_bytes == 0;
  };
  h.fours = p.rows % 4 == 0 && aligned(p.out, p.out_row_bytes) &&
            (p.residual == nullptr || aligned(p.residual, p.residual_row_bytes));
  h.tiles = static_cast<int>(Up(p.rows, hopper::kTileRows >> p.gated));
  h.depth = static_cast<int>(Up(p.pitch * ElementBytes(p.type), hopper::kRowBytes));
  return h;
}

// Launches follow one another: they share the place of parts.
class HopperProducts final : public FusedProducts {
 public:
  static std::unique_ptr<FusedProducts> Open(int device) {
    if (!hopper::RunsOn(device)) return nullptr;
    std::unique_ptr<HopperProducts> products(new HopperProducts);
    products->encode_ = hopper::FindEncode();
    gpu::Facts facts;
    if (products->encode_ == nullptr || gpu::ReadFacts(device, &facts) != gpu::kSuccess) {
      return nullptr;
    }
    products->multiprocessors_ = facts.multiprocessors;
    const size_t bytes = sizeof(float) * hopper::kTileRows * hopper::kMostTokens *
                         static_cast<size_t>(facts.multiprocessors);
    void* parts = nullptr;
    if (gpu::Alloc(&parts, bytes) != gpu::kSuccess) return nullptr;
    products->parts_ = static_cast<float*>(parts);
    // A stream of the caller's does not wait for this by itself.
    if (cudaMemsetAsync(parts, hopper::kNoPart & 0xff, bytes, nullptr) != cudaSuccess ||
        gpu::Sync(nullptr) != gpu::kSuccess) {
      return nullptr;
    }
    return products;
  }

  ~HopperProducts() override {
    if (parts_ != nullptr) (void)gpu::Free(parts_);
  }

  bool Takes(const FusedProductParams& p) const override {
    const hopper::MatmulParams h = KernelParams(p);
    return p.tokens <= hopper::kMostTokens &&
           int64_t{h.tiles} * h.depth * multiprocessors_ <= INT32_MAX;
  }

  gpu::Error Launch(gpu::Stream stream, const FusedProductParams& p) override {
    hopper::MatmulLaunch launch;
    launch.stream = stream;
    hopper::MatmulParams params = KernelParams(p);
    if (!MapWeight(encode_, p, &launch.weight_map) || !MapX(encode_, p, &launch.x_map)) {
      return cudaErrorInvalidValue;
    }
    params.parts = parts_;
    const Split split = SplitWork(params.tiles, params.depth, multiprocessors_, p.tokens);
    params.shares = static_cast<int>(split.of_tile);
    params.line = static_cast<int>(split.line);
    launch.blocks = static_cast<unsigned>(split.blocks);
    if (p.type == ASHLAR_F8_E4M3) return hopper::LaunchMatmulF8(launch, params);
    if (p.type == ASHLAR_BF16) return hopper::LaunchMatmulBF16(launch, params);
    return hopper::LaunchMatmulF16(launch, params);
  }

 private:
  Encode encode_ = nullptr;
  int multiprocessors_ = 0;
  float* parts_ = nullptr;  // see hopper::MatmulParams
};

}  // namespace

std::unique_ptr<FusedProducts> OpenFusedProducts(int device) {
  return HopperProducts::Open(device);
}

}  // namespace ashlar::gpu_kernels
