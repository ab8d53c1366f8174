#include "skinny_kernel.h"
#include "skinny_product.h"

namespace ashlar::gpu_kernels {
namespace {

// How a product is carried out: `blocks` with `each` strips of out, in groups of `strips`.
struct Way {
  int blocks = 0, each = 0, strips = 0;
  SkinnyLayout layout;
};

int Up(int value, int step) { return (value + step - 1) / step; }

SkinnyLayout MakeLayout(int wave, int strips, int stages, bool whole_x, const SkinnyParams& p) {
  const int waves = kSkinnyThreads / wave, strip_rows = wave / 4, values = ValuesOfVector(p.type);
  SkinnyLayout layout;
  layout.stages = stages;
  layout.x_slots = whole_x ? 0 : Up(stages, strips) + 1;
  // More than whole turns of the banks: two tokens' vectors side by side never collide.
  layout.x_pitch = (whole_x ? Slices(p) : 1) * kSliceVectors * values * 2 + (values == 8 ? 64 : 16);
  layout.x = waves * stages * strip_rows * kSliceBytes;
  layout.sums = layout.x + p.tokens * layout.x_pitch * (whole_x ? 1 : waves * layout.x_slots);
  constexpr int kFloat = sizeof(float);
  layout.squares = layout.sums + 2 * waves * p.tokens * (strips * strip_rows + 8) * kFloat;
  layout.all = layout.squares + (p.norm == nullptr ? 0 : p.tokens * TokenShares(p, wave) * kFloat);
  return layout;
}

// A group's sums and x of a slice lie in registers.
int MostStrips(const SkinnyParams& p) {
  return p.type == ASHLAR_F8_E4M3 && p.tokens > kTile / 2 ? 2 : 4;
}

// Shared memory that a block may take, and the depth of the ring in it.
struct Wish {
  int64_t bytes;
  int stages;
};

// The first wish that can be granted, with all of x before slices of it and the most strips a
// group; 0 blocks where none can. With half of a multiprocessor's memory the next product begins
// beside this one.
Way Choose(const gpu::Facts& facts, const SkinnyParams& p) {
  Way way;
  const int all = Up(p.rows, facts.wave / 4);
  way.each = Up(all, facts.multiprocessors);
  const int matrices = p.gated != 0 ? 2 : 1, strips = way.each * matrices;
  const int stages = strips * Up(Slices(p), kSkinnyThreads / facts.wave);  // of a wave in all
  const int64_t whole = facts.shared_bytes, half = whole / 2 - 1024;
  for (const Wish& wish :
       {Wish{half, 6}, {half, 4}, {half, 2}, {whole, 6}, {whole, 4}, {whole, 2}}) {
    const bool needless = wish.stages > 2 && wish.stages - 2 >= stages;
    const bool shallow = wish.bytes == half && wish.stages == 2 && stages > 2;
    if (needless || shallow) continue;
    for (const bool whole_x : {true, false}) {
      if (!whole_x && p.norm != nullptr) continue;
      for (way.strips = MostStrips(p); way.strips >= matrices; way.strips /= 2) {
        if (way.strips / 2 >= strips) continue;
        way.layout = MakeLayout(facts.wave, way.strips, wish.stages, whole_x, p);
        if (way.layout.all > wish.bytes) continue;
        way.blocks = Up(all, way.each);
        return way;
      }
    }
  }
  return way;
}

template <class W, int kWave, int kStrips>
gpu::Error Launch(gpu::Stream stream, const Way& way, const SkinnyParams& p) {
  const gpu::Grid grid{static_cast<unsigned>(way.blocks)};
  const auto launch = [&](void (*kernel)(SkinnyParams, SkinnyLayout, int)) {
    return gpu::Launch(stream, grid, kSkinnyThreads, static_cast<size_t>(way.layout.all), kernel, p,
                       way.layout, way.each);
  };
  if constexpr (MatrixLayout<kWave>::kVectors == 2 && !(std::is_same_v<W, F8> && kStrips == 4)) {
    if (p.tokens > kTile / 2) return launch(SkinnyKernel<W, kWave, kStrips, 2>);
  }
  return launch(SkinnyKernel<W, kWave, kStrips, 1>);
}

}  // namespace

bool FitsSkinny(const gpu::Facts& facts, const SkinnyParams& p) {
  return Choose(facts, p).blocks > 0;
}

gpu::Error LaunchSkinny(const gpu::Facts& facts, gpu::Stream stream, const SkinnyParams& p) {
  const Way way = Choose(facts, p);
  return gpu::WithWave(facts.wave, [&](auto wave) {
    constexpr int kWave = wave;
    const auto launch = [&](auto strips) {
      constexpr int kStrips = strips;
      if (p.type == ASHLAR_F8_E4M3) return Launch<F8, kWave, kStrips>(stream, way, p);
      if (p.type == ASHLAR_BF16) return Launch<BF16, kWave, kStrips>(stream, way, p);
      return Launch<F16, kWave, kStrips>(stream, way, p);
    };
    if (way.strips == 1) return launch(gpu::Constant<1>{});
    if (way.strips == 2) return launch(gpu::Constant<2>{});
    return launch(gpu::Constant<4>{});
  });
}

}  // namespace ashlar::gpu_kernels
