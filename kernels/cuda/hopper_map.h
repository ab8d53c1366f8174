// Tensor maps: what the copy engine knows of a tensor in global memory, made on the host.
#pragma once

#include <cuda.h>

#include "ashlar_plugin.h"
#include "gpu/gpu.h"

namespace ashlar::hopper {

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's function; NULL where it has none.
inline Encode FindEncode() {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode,
                                                             12000, cudaEnableDefault, &found);
  return error == cudaSuccess ? reinterpret_cast<Encode>(encode) : nullptr;
}

// A tensor of elements of 8 or 16 bits, innermost extent first; stride i is that of extent i + 1,
// in bytes.
struct Extents {
  static constexpr int kMost = 5;
  int rank;
  cuuint64_t size[kMost], stride[kMost - 1];
  cuuint32_t box[kMost];
};

// Boxes have rows of 128 bytes, swizzled; what lies outside the tensor comes as zeros.
inline bool MakeMap(Encode encode, ashlar_dtype dtype, const void* data, const Extents& e,
                    CUtensorMap* map) {
  const cuuint32_t dense[Extents::kMost] = {1, 1, 1, 1, 1};
  const auto type = dtype == ASHLAR_BF16  ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                    : dtype == ASHLAR_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                          : CU_TENSOR_MAP_DATA_TYPE_UINT8;
  return encode(map, type, static_cast<cuuint32_t>(e.rank), const_cast<void*>(data), e.size,
                e.stride, e.box, dense, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace ashlar::hopper
