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
int64_t UpDistance(const SkinnyParams& p) {
  return static_cast<const char*>(p.weight[1]) - static_cast<const char*>(p.weight[0]);
}

// Columns, 8 rows, gates and ups, groups of 8 rows: those of gates and of ups lie in turn.
bool MapWeight(Encode encode, const SkinnyParams& p, CUtensorMap* map) {
  const int bytes = ElementBytes(p.type);
  const auto row = static_cast<cuuint64_t>(p.pitch * bytes);
  const auto kinds = p.gated != 0 ? 2u : 1u;
  const Extents e{4,
                  {cuuint64_t(p.pitch), 8, kinds, cuuint64_t(Up(p.rows, 8))},
                  {row, p.gated != 0 ? cuuint64_t(UpDistance(p)) : 8 * row, 8 * row},
                  {cuuint32_t(hopper::kRowBytes / bytes), 8, kinds, hopper::kTileRows / 8 / kinds}};
  return MakeMap(encode, p.type, p.weight[0], e, map);
}

// Whether x is brought to what is multiplied by each block for itself.
bool IsResident(const SkinnyParams& p) { return p.norm != nullptr || p.x_dtype != p.type; }

bool MapX(Encode encode, const SkinnyParams& p, CUtensorMap* map) {
  const int columns = hopper::TokenColumns(p.tokens);
  const Extents e{2,
                  {cuuint64_t(p.cols), cuuint64_t(p.tokens)},
                  {cuuint64_t(p.x_row_bytes)},
                  {cuuint32_t(hopper::kRowBytes / ElementBytes(p.type)),
                   cuuint32_t(columns / hopper::ClusterOf(columns))}};
  return MakeMap(encode, p.type, p.x, e, map);
}

// How many clusters share the work, and of each tile where all share alike, else 0. That spares
// them parts of two tiles, and is worth leaving a few out.
struct Split {
  int clusters, of_tile;
};
Split SplitWork(int64_t tiles, int64_t depth, int64_t most, int columns) {
  const int64_t least = columns > 16 ? 4 : 2;  // units of a share: fewer are not worth adding up
  const int64_t of_tile = std::min(most / tiles, depth / least);
  if (of_tile >= 1 && 16 * of_tile * tiles >= 15 * most) {
    return {static_cast<int>(of_tile * tiles), static_cast<int>(of_tile)};
  }
  const int64_t worth = std::max<int64_t>(tiles * depth / least, 1);
  return {static_cast<int>(std::min(worth, most)), 0};
}

hopper::MatmulParams KernelParams(const SkinnyParams& p) {
  hopper::MatmulParams h{};
  h.rows = p.rows;
  h.tokens = p.tokens;
  h.tiles = static_cast<int>(Up(p.rows, hopper::kTileRows >> p.gated));
  h.depth = static_cast<int>(Up(p.pitch * ElementBytes(p.type), hopper::kRowBytes));
  h.resident = IsResident(p);
  h.cols = p.cols;
  h.x = p.x;
  h.x_dtype = p.x_dtype;
  h.x_row_bytes = p.x_row_bytes;
  h.norm = p.norm;
  h.parts = p.parts;
  h.eps = p.eps;
  h.gated = p.gated;
  h.activation = p.activation;
  h.scales[0] = p.scales[0], h.scales[1] = p.scales[1];
  h.x_scales = p.x_scales;
  h.bias = p.bias;
  h.residual = p.residual;
  h.residual_row_bytes = p.residual_row_bytes;
  h.out = p.out;
  h.out_dtype = p.out_dtype;
  h.out_row_bytes = p.out_row_bytes;
  const auto even = [&](const void* data, int64_t row_bytes) {
    const int64_t pair_bytes = 2 * ElementBytes(p.out_dtype);
    return reinterpret_cast<uintptr_t>(data) % pair_bytes == 0 && row_bytes % pair_bytes == 0;
  };
  h.pairs = p.rows % 2 == 0 && even(p.out, p.out_row_bytes) &&
            (p.residual == nullptr || even(p.residual, p.residual_row_bytes));
  return h;
}

// Launches follow one another: they share counters.
class HopperProducts final : public FusedProducts {
 public:
  static std::unique_ptr<FusedProducts> Open(int device) {
    if (!hopper::RunsOn(device)) return nullptr;
    std::unique_ptr<HopperProducts> products(new HopperProducts);
    gpu::Facts facts;
    products->encode_ = hopper::FindEncode();
    if (products->encode_ == nullptr || gpu::ReadFacts(device, &facts) != gpu::kSuccess) {
      return nullptr;
    }
    products->multiprocessors_ = facts.multiprocessors;
    const size_t bytes = sizeof(uint32_t) * static_cast<size_t>(facts.multiprocessors);
    void* arrived = nullptr;
    if (gpu::Alloc(&arrived, bytes) != gpu::kSuccess) return nullptr;
    products->arrived_ = static_cast<uint32_t*>(arrived);
    // A stream of the caller's does not wait for the zeros by itself.
    if (gpu::Zero(arrived, bytes, nullptr) != gpu::kSuccess ||
        gpu::Sync(nullptr) != gpu::kSuccess) {
      return nullptr;
    }
    return products;
  }

  ~HopperProducts() override {
    if (arrived_ != nullptr) (void)gpu::Free(arrived_);
  }

  bool Takes(const SkinnyParams& p) const override {
    const hopper::MatmulParams h = KernelParams(p);
    const bool fits = p.tokens <= hopper::kMostTokens &&
                      int64_t{h.tiles} * h.depth * multiprocessors_ <= INT32_MAX;
    if (!h.resident) return fits;
    // A value times the norm's weight may leave float16.
    return fits && p.tokens <= hopper::kMostResidentTokens &&
           p.tokens * h.depth * hopper::kRowBytes <= hopper::kMostResidentBytes &&
           !(p.norm != nullptr && p.type == ASHLAR_F16);
  }

  int64_t PartsBytes(int tokens) const override {
    if (tokens > hopper::kMostTokens) return 0;
    return int64_t{multiprocessors_} * hopper::kTileRows * hopper::TokenColumns(tokens) *
           static_cast<int64_t>(sizeof(float));
  }

  gpu::Error Launch(gpu::Stream stream, const SkinnyParams& p) override {
    hopper::MatmulLaunch launch;
    launch.stream = stream;
    hopper::MatmulParams params = KernelParams(p);
    if (!MapWeight(encode_, p, &launch.weight_map)) return cudaErrorInvalidValue;
    launch.x_map = launch.weight_map;
    if (!params.resident && !MapX(encode_, p, &launch.x_map)) return cudaErrorInvalidValue;
    params.arrived = arrived_;
    const int columns = hopper::TokenColumns(p.tokens), cluster = hopper::ClusterOf(columns);
    const Split split =
        SplitWork(Up(params.tiles, cluster), params.depth, multiprocessors_ / cluster, columns);
    params.shares = split.of_tile;
    launch.blocks = static_cast<unsigned>(split.clusters * cluster);
    if (p.type == ASHLAR_F8_E4M3) return hopper::LaunchMatmulF8(launch, params);
    if (p.type == ASHLAR_BF16) return hopper::LaunchMatmulBF16(launch, params);
    return hopper::LaunchMatmulF16(launch, params);
  }

 private:
  Encode encode_ = nullptr;
  int multiprocessors_ = 0;
  uint32_t* arrived_ = nullptr;  // see hopper::MatmulParams
};

}  // namespace

std::unique_ptr<FusedProducts> OpenFusedProducts(int device) {
  return HopperProducts::Open(device);
}

}  // namespace ashlar::gpu_kernels
