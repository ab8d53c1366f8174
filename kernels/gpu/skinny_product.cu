#include "skinny_kernel.h"
#include "skinny_product.h"

namespace ashlar::gpu_kernels {
namespace {

// How the rows are shared out: `each` strips of out a block.
struct Split {
  int blocks, each;
};
Split Share(const gpu::Facts& facts, const SkinnyParams& p) {
  const int strip_rows = facts.wave / 4;
  const int strips = (p.rows + strip_rows - 1) / strip_rows;
  const int each = (strips + facts.multiprocessors - 1) / facts.multiprocessors;
  return {(strips + each - 1) / each, each};
}

// Calls body(Constant<strips>) with the strips of a group: no more than a block has.
template <class Body>
auto WithStrips(const gpu::Facts& facts, const SkinnyParams& p, Body body) {
  const int strips = Share(facts, p).each * (p.gated != 0 ? 2 : 1);
  if (strips == 1) return body(gpu::Constant<1>{});
  if (strips == 2) return body(gpu::Constant<2>{});
  return body(gpu::Constant<4>{});
}

template <class T, int kWave, int kStrips>
gpu::Error Launch(const gpu::Facts& facts, gpu::Stream stream, const SkinnyParams& p) {
  using Shape = SkinnyShape<kWave, kStrips>;
  const Split split = Share(facts, p);
  const gpu::Grid grid{static_cast<unsigned>(split.blocks)};
  const size_t shared_bytes = Shape::SharedBytes(p);
  if constexpr (MatrixLayout<kWave>::kVectors == 2) {
    if (p.tokens > kTile / 2) {
      return gpu::Launch(stream, grid, Shape::kThreads, shared_bytes,
                         SkinnyKernel<T, kWave, kStrips, 2>, p, split.each);
    }
  }
  return gpu::Launch(stream, grid, Shape::kThreads, shared_bytes,
                     SkinnyKernel<T, kWave, kStrips, 1>, p, split.each);
}

}  // namespace

bool FitsSkinny(const gpu::Facts& facts, const SkinnyParams& p) {
  return gpu::WithWave(facts.wave, [&](auto wave) {
    return WithStrips(facts, p, [&](auto strips) {
      constexpr int kWave = wave, kStrips = strips;
      return static_cast<int64_t>(SkinnyShape<kWave, kStrips>::SharedBytes(p)) <=
             facts.shared_bytes;
    });
  });
}

gpu::Error LaunchSkinny(const gpu::Facts& facts, gpu::Stream stream, ashlar_dtype type,
                        const SkinnyParams& p) {
  return gpu::WithWave(facts.wave, [&](auto wave) {
    return WithStrips(facts, p, [&](auto strips) {
      constexpr int kWave = wave, kStrips = strips;
      return type == ASHLAR_BF16 ? Launch<BF16, kWave, kStrips>(facts, stream, p)
                                 : Launch<F16, kWave, kStrips>(facts, stream, p);
    });
  });
}

}  // namespace ashlar::gpu_kernels
