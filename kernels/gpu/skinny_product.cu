#include <algorithm>

#include "skinny_kernel.h"
#include "skinny_product.h"

namespace ashlar::gpu_kernels {
namespace {

int Up(int value, int step) { return (value + step - 1) / step; }

constexpr int kMostAtOnce = 6;  // stages

// Shared memory that a block may take, and the depth of the ring in it.
struct Wish {
  int64_t bytes;
  int stages;
};

// The most of x that fits such a block; none when the rest alone does not.
SkinnyLayout MakeLayout(const SkinnyLayout& share, const Wish& wish, int wave,
                        const FusedProductParams& p) {
  const int waves = kSkinnyThreads / wave, strip_rows = wave / 4;
  const int slice_bytes = kSliceVectors * ValuesOfVector(p.type) * 2;
  // More than whole turns of the banks: two tokens' vectors side by side never collide.
  const int pad = ValuesOfVector(p.type) == 8 ? 64 : 16;
  SkinnyLayout layout = share;
  layout.stages = wish.stages;
  layout.sums = waves * wish.stages * strip_rows * kSliceBytes;
  layout.squares = layout.sums + waves * p.tokens * layout.sum_pitch * int{sizeof(float)};
  layout.x = layout.squares + p.tokens * kSquares * int{sizeof(float)};
  const int64_t room = (wish.bytes - layout.x) / (waves * p.tokens) - pad;
  const int own = Up(Slices(p), waves);
  layout.chunk = static_cast<int>(std::clamp<int64_t>(room / slice_bytes, 0, own));
  layout.x_pitch = layout.chunk * slice_bytes + pad;
  layout.all = layout.x + waves * p.tokens * layout.x_pitch;
  return layout;
}

// The first wish that can be granted, with a good part of x; no chunk where none can. With half of
// a multiprocessor's memory the next product begins beside this one.
SkinnyLayout Choose(const gpu::Facts& facts, const FusedProductParams& p) {
  constexpr int kSumBytes = 16 << 10;  // about as many are worth a group
  const int waves = kSkinnyThreads / facts.wave, strip_rows = facts.wave / 4;
  const int matrices = p.gated != 0 ? 2 : 1;
  SkinnyLayout share;
  share.each = Up(Up(p.rows, strip_rows), facts.multiprocessors);
  const int strips = share.each * matrices, own = Up(Slices(p), waves);
  const int fitting = kSumBytes / (waves * p.tokens * strip_rows * int{sizeof(float)});
  share.group = std::clamp(fitting / matrices * matrices, matrices, strips);
  share.sum_pitch = share.group * strip_rows + 8;
  const int64_t whole = facts.shared_bytes, half = whole / 2 - 1024;
  if (strips * own <= kMostAtOnce && p.tokens <= kTile / 2) {
    SkinnyLayout layout = MakeLayout(share, {half, strips * own}, facts.wave, p);
    layout.at_once = layout.chunk == own && layout.group == strips;
    if (layout.at_once) return layout;
  }
  for (const Wish& wish :
       {Wish{half, 6}, {half, 4}, {half, 2}, {whole, 6}, {whole, 4}, {whole, 2}}) {
    const bool needless = wish.stages > 2 && wish.stages - 2 >= strips * own;
    const bool shallow = wish.bytes == half && wish.stages == 2 && strips * own > 2;
    if (needless || shallow) continue;
    const SkinnyLayout layout = MakeLayout(share, wish, facts.wave, p);
    if (layout.chunk >= Up(own, 4)) return layout;
  }
  return {};
}

// The kernel for a layout, of those for kAll stages at once and fewer.
template <class W, int kWave, int kAll = kMostAtOnce>
auto KernelOf(const SkinnyLayout& layout) {
  if constexpr (kAll > 1) {
    if (layout.stages < kAll) return KernelOf<W, kWave, kAll - 1>(layout);
  }
  return SkinnyKernel<W, kWave, 1, kAll>;
}

template <class W, int kWave>
gpu::Error Launch(gpu::Stream stream, const SkinnyLayout& layout, const FusedProductParams& p) {
  const int blocks = Up(Up(p.rows, kWave / 4), layout.each);
  const auto launch = [&](void (*kernel)(FusedProductParams, SkinnyLayout)) {
    return gpu::Launch(stream, {static_cast<unsigned>(blocks)}, kSkinnyThreads,
                       static_cast<size_t>(layout.all), kernel, p, layout);
  };
  if (layout.at_once) return launch(KernelOf<W, kWave>(layout));
  if constexpr (MatrixLayout<kWave>::kVectors == 2) {
    if (p.tokens > kTile / 2) return launch(SkinnyKernel<W, kWave, 2, 0>);
  }
  return launch(SkinnyKernel<W, kWave, 1, 0>);
}

}  // namespace

bool FitsSkinny(const gpu::Facts& facts, const FusedProductParams& p) {
  return Choose(facts, p).chunk > 0;
}

gpu::Error LaunchSkinny(const gpu::Facts& facts, gpu::Stream stream, const FusedProductParams& p) {
  const SkinnyLayout layout = Choose(facts, p);
  return gpu::WithWave(facts.wave, [&](auto wave) {
    constexpr int kWave = wave;
    if (p.type == ASHLAR_F8_E4M3) return Launch<F8, kWave>(stream, layout, p);
    if (p.type == ASHLAR_BF16) return Launch<BF16, kWave>(stream, layout, p);
    return Launch<F16, kWave>(stream, layout, p);
  });
}

}  // namespace ashlar::gpu_kernels
