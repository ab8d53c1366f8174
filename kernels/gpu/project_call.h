// One product with what stands around it, on its way: what is decided before anything is launched,
// then x as it changes.
#pragma once

#include "device.h"
#include "number.h"
#include "skinny_product.h"
#include "weight.h"

namespace ashlar::gpu_kernels {

struct ProjectCall {
  ashlar_device* device;
  ashlar_stream* stream;
  const ashlar_projection& a;
  const ashlar_weight& weight;
  ashlar_dtype type;                // CommonType
  ashlar_tensor x;                  // what is multiplied
  const float* x_scales = nullptr;  // of float8 x
  void* normed = nullptr;           // for x after a norm that is a kernel of its own
  void* room = nullptr;             // for x as `type`, padded
  void* wide = nullptr;             // for gates and ups
  bool fused = false;               // by the device's own kernel
  bool skinny = false, norm_inside = false;
  bool norm_apart = false;  // still to be done, ahead of the product
};

// Chooses the kernels.
void ChooseKernels(ProjectCall& c);
// Sizes what the kernels pass to each other, and takes it from the device's scratch; false when
// there is no memory.
bool TakeScratch(ProjectCall& c);

// The type of every part when they share one, else float32, which every kernel but the skinny one
// takes.
ashlar_dtype CommonType(const ashlar_weight& weight);
FusedProductParams MakeFusedParams(const ProjectCall& c);

inline bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }
// The type of x that own kernels multiply such a weight with.
inline ashlar_dtype XType(ashlar_dtype weight) {
  return weight == ASHLAR_F8_E4M3 ? ASHLAR_BF16 : weight;
}
inline bool IsPlain(const ashlar_tensor& x, ashlar_dtype type) {
  return x.dtype == type && HasEights(x);
}
// The type of x after a norm that is a kernel of its own.
inline ashlar_dtype NormedType(const ProjectCall& c) {
  return c.type == ASHLAR_F32 ? c.a.x.dtype : XType(c.type);
}

}  // namespace ashlar::gpu_kernels
