// sum += x. Bound by bytes.
#include "common/shapes.h"
#include "device.h"
#include "number.h"
#include "ops.h"

namespace ashlar::gpu_kernels {
namespace {

GPU_KERNEL void AddKernel(const ashlar_tensor sum, const ashlar_tensor x, bool eights) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  char* to = static_cast<char*>(sum.data) + gpu::BlockX() * sum.stride[0];
  const char* from = static_cast<const char*>(x.data) + gpu::BlockX() * x.stride[0];
  for (int col = 8 * gpu::ThreadX(); eights && col < x.shape[1]; col += 8 * gpu::ThreadsX()) {
    float values[8], more[8];
    LoadFloats(sum.dtype, to, col, values);
    LoadFloats(x.dtype, from, col, more);
    for (int i = 0; i < 8; ++i) values[i] += more[i];
    StoreFloats(sum.dtype, to, col, values);
  }
  for (int col = gpu::ThreadX(); !eights && col < x.shape[1]; col += gpu::ThreadsX()) {
    StoreAs(sum.dtype, to, col, LoadAs(sum.dtype, to, col) + LoadAs(x.dtype, from, col));
  }
}

}  // namespace

int Add(ashlar_device* device, ashlar_stream* stream, ashlar_tensor sum, ashlar_tensor x) {
  std::string problem = CheckMatrix("add x", x, -1, -1, kFloats);
  if (problem.empty()) problem = CheckMatrix("add sum", sum, x.shape[0], x.shape[1], kFloats);
  if (!problem.empty()) return Failed(problem);
  if (x.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "add") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(gpu::Launch(StreamOf(device, stream), {static_cast<unsigned>(x.shape[0])}, 256, 0,
                             AddKernel, sum, x, HasEights(sum) && HasEights(x)),
                 "add");
}

}  // namespace ashlar::gpu_kernels
