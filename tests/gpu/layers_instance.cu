// Instances of the kernel of whole layers, for a look at what the compiler makes of it.
#include "cuda/hopper_layers.h"

namespace ashlar::hopper {

template GPU_KERNEL void LayersKernel<gpu_kernels::BF16, gpu_kernels::BF16, 128, 8>(
    GPU_GRID_CONSTANT const gpu_kernels::LayersParams, GPU_GRID_CONSTANT const ProductsLayout);
template GPU_KERNEL void LayersKernel<gpu_kernels::F8, gpu_kernels::F8, 128, 8>(
    GPU_GRID_CONSTANT const gpu_kernels::LayersParams, GPU_GRID_CONSTANT const ProductsLayout);
template GPU_KERNEL void LayersKernel<gpu_kernels::BF16, gpu_kernels::BF16, 128, 4>(
    GPU_GRID_CONSTANT const gpu_kernels::LayersParams, GPU_GRID_CONSTANT const ProductsLayout);

}  // namespace ashlar::hopper
