// Copies blocks inside one allocation, all pairs at once: none may read what another writes. Bound
// by bytes.
#include "device.h"
#include "ops.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;

GPU_KERNEL void CopyBlocksKernel(char* base, const int64_t* pairs, int64_t bytes) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const int64_t from = pairs[2 * gpu::BlockY()], to = pairs[2 * gpu::BlockY() + 1];
  if (from < 0 || to < 0) return;
  const int64_t thread = int64_t{gpu::BlockX()} * gpu::ThreadsX() + gpu::ThreadX();
  const int64_t threads = int64_t{gpu::GridX()} * gpu::ThreadsX();
  constexpr int64_t kWide = sizeof(gpu::Vector);
  if ((reinterpret_cast<uintptr_t>(base) | from | to | bytes) % kWide == 0) {
    for (int64_t i = thread * kWide; i < bytes; i += threads * kWide) {
      *reinterpret_cast<gpu::Vector*>(base + to + i) =
          *reinterpret_cast<const gpu::Vector*>(base + from + i);
    }
  } else {
    for (int64_t i = thread; i < bytes; i += threads) base[to + i] = base[from + i];
  }
}

}  // namespace

int CopyBlocks(ashlar_device* device, ashlar_stream* stream, void* base, const int64_t* pairs,
               int32_t n, int64_t bytes) {
  if (n < 0 || bytes < 0) return Failed("copy_blocks: a negative count or size");
  if (n == 0 || bytes == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "copy_blocks") != ASHLAR_OK) return ASHLAR_FAILED;
  const int64_t wanted = (bytes / 16 + kThreads - 1) / kThreads;
  const gpu::Grid grid{static_cast<unsigned>(wanted < 1    ? 1
                                             : wanted < 64 ? wanted
                                                           : 64),
                       static_cast<unsigned>(n)};
  return Checked(gpu::Launch(StreamOf(device, stream), grid, kThreads, 0, CopyBlocksKernel,
                             static_cast<char*>(base), pairs, bytes),
                 "copy_blocks");
}

}  // namespace ashlar::gpu_kernels
