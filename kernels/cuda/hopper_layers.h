// Whole decoder layers of a step of 1 to 4 tokens in one launch (gpu/layers.h). One block a
// multiprocessor, in clusters of 8, or of 4 for several tokens; in each of the five phases of a
// layer they wait for values of the phase before. Weights come through rings of shared memory as
// one stream that no such wait stops, so that memory has work meanwhile. Bound by the weights'
// bytes, and by the waits' latency where those are few.
#pragma once

#include "hopper_layers_attention.h"
#include "hopper_layers_product.h"

namespace ashlar::hopper {

// Of a block's shared memory: the attention's come first.
template <class Stored, int kHeadDim, int kRanks>
inline constexpr int kAttentionBytes =
    (int{sizeof(typename LayerStep<Stored, kHeadDim, kRanks>::Shared)} + 127) / 128 * 128;

#if defined(ASHLAR_HOPPER)

template <class W, class Stored, int kHeadDim, int kRanks>
GPU_DEVICE void RunLayers(const gpu_kernels::LayersParams& p, const ProductsLayout& layout) {
  using enum gpu_kernels::LayerProduct;
  using Attention = LayerAttention<Stored, kHeadDim, kRanks>;
  char* const shared = gpu::SharedMemory();
  uint64_t* const values = ValuesOf(p.words);
  Attention attention(p, values + layout.words.qkv, values + layout.words.x[kOutput],
                      *reinterpret_cast<typename Attention::Shared*>(shared));
  LayerProducts<W> products(p, layout, shared + kAttentionBytes<Stored, kHeadDim, kRanks>);
  products.Start();
  attention.Start();
  gpu::WaitForPrevious();
  const Rounds rounds(p.words);
  // One loop with one place for each part: the code is read as often as there are layers.
  int layer = 0, product = kQkv;
#pragma unroll 1
  for (;;) {
    products.Run(layer, product, rounds);
    const bool ends_layer = product == kDown;
    if (ends_layer && layer + 1 == p.layers) break;
    products.Refill();
    if (product == kQkv) attention.Run(layer, rounds.Of(layer));
    if (product == kOutput) attention.FetchAhead(layer);  // what others wait for went first
    layer += ends_layer ? 1 : 0;
    product = ends_layer ? kQkv : product + 1;
    products.Ahead(layer, product);
  }
  rounds.End(p.layers, kProductThreads);
  gpu::ReleaseNext();  // no sooner: its weights would come ahead of what this one waits for
}

#endif

template <class W, class Stored, int kHeadDim, int kRanks>
GPU_KERNEL void GPU_BOUNDS(kProductThreads, 1)
    LayersKernel(GPU_GRID_CONSTANT const gpu_kernels::LayersParams params,
                 GPU_GRID_CONSTANT const ProductsLayout layout) {
#if defined(ASHLAR_HOPPER)
  RunLayers<W, Stored, kHeadDim, kRanks>(params, layout);
#endif
}

}  // namespace ashlar::hopper
