// out[i] = x[rows[i]]; NaN for an index that is no row. Bound by bytes.
#include <cmath>

#include "common/shapes.h"
#include "device.h"
#include "number.h"
#include "ops.h"

namespace ashlar::gpu_kernels {
namespace {

GPU_KERNEL void GatherKernel(const ashlar_tensor out, const ashlar_tensor x, const int32_t* rows,
                             bool eights) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const int64_t row = rows[gpu::BlockX()];
  const bool inside = row >= 0 && row < x.shape[0];
  const char* from = static_cast<const char*>(x.data) + (inside ? row : 0) * x.stride[0];
  char* to = static_cast<char*>(out.data) + gpu::BlockX() * out.stride[0];
  for (int col = 8 * gpu::ThreadX(); eights && col < out.shape[1]; col += 8 * gpu::ThreadsX()) {
    float values[8];
    LoadFloats(x.dtype, from, col, values);
    for (float& value : values) value = inside ? value : NAN;
    StoreFloats(out.dtype, to, col, values);
  }
  for (int col = gpu::ThreadX(); !eights && col < out.shape[1]; col += gpu::ThreadsX()) {
    StoreAs(out.dtype, to, col, inside ? LoadAs(x.dtype, from, col) : NAN);
  }
}

}  // namespace

int Gather(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
           const int32_t* rows) {
  std::string problem = CheckMatrix("gather x", x, -1, -1, kFloats);
  if (problem.empty()) problem = CheckMatrix("gather out", out, -1, x.shape[1], kFloats);
  if (!problem.empty()) return Failed(problem);
  if (out.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "gather") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(gpu::Launch(StreamOf(device, stream), {static_cast<unsigned>(out.shape[0])}, 256,
                             0, GatherKernel, out, x, rows, HasEights(out) && HasEights(x)),
                 "gather");
}

}  // namespace ashlar::gpu_kernels
