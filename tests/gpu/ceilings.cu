#include "gpu/ceilings.h"
#include "gpu/gpu.h"

namespace ashlar::gpu_test {
namespace {

constexpr int kThreads = 512, kEach = 8;  // accesses of a thread that are under way together
constexpr int64_t kBlockBytes = int64_t{kThreads} * kEach * sizeof(gpu::Vector);

GPU_DEVICE void Gather(const gpu::Vector* from, gpu::Vector* got) {
  const int64_t first = int64_t{gpu::BlockX()} * kThreads * kEach + gpu::ThreadX();
#pragma unroll
  for (int i = 0; i < kEach; ++i) got[i] = from[first + i * kThreads];
}

GPU_KERNEL void ReadKernel(const gpu::Vector* from, uint32_t* sink) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  gpu::Vector got[kEach];
  Gather(from, got);
  uint32_t all = 0;
  for (int i = 0; i < kEach; ++i) {
    for (uint32_t word : got[i].word) all ^= word;
  }
  if (all == 0x9e3779b9u) *sink = all;
}

GPU_KERNEL void CopyKernel(gpu::Vector* to, const gpu::Vector* from) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  gpu::Vector got[kEach];
  Gather(from, got);
  const int64_t first = int64_t{gpu::BlockX()} * kThreads * kEach + gpu::ThreadX();
#pragma unroll
  for (int i = 0; i < kEach; ++i) to[first + i * kThreads] = got[i];
}

gpu::Grid GridFor(int64_t bytes) { return {static_cast<unsigned>(bytes / kBlockBytes)}; }

}  // namespace

bool LaunchRead(void* stream, const void* from, int64_t bytes, void* sink) {
  return gpu::Launch(static_cast<gpu::Stream>(stream), GridFor(bytes), kThreads, 0, ReadKernel,
                     static_cast<const gpu::Vector*>(from),
                     static_cast<uint32_t*>(sink)) == gpu::kSuccess;
}
bool LaunchCopy(void* stream, void* to, const void* from, int64_t bytes) {
  return gpu::Launch(static_cast<gpu::Stream>(stream), GridFor(bytes), kThreads, 0, CopyKernel,
                     static_cast<gpu::Vector*>(to),
                     static_cast<const gpu::Vector*>(from)) == gpu::kSuccess;
}

}  // namespace ashlar::gpu_test
