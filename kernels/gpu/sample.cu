// From rows of logits to ids, on the device: one pass over all slices of all rows, one block a row
// after it. Bound by one read of the logits.
#include "common/shapes.h"
#include "device.h"
#include "ops.h"
#include "sample_group.h"
#include "sample_row.h"

namespace ashlar::gpu_kernels {
namespace {

GPU_KERNEL void ResolveKernel(int32_t* ids, const int32_t* from, int n) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const int i = gpu::BlockX() * gpu::ThreadsX() + gpu::ThreadX();
  if (i < n && ids[i] < 0) ids[i] = from[-1 - ids[i]];
}

}  // namespace

int Sample(ashlar_device* device, ashlar_stream* stream, ashlar_tensor logits,
           const ashlar_draw* draws, int32_t* ids) {
  const std::string problem = CheckMatrix("sample logits", logits, -1, -1);
  if (!problem.empty()) return Failed(problem);
  const int64_t n = logits.shape[0], vocab = logits.shape[1];
  const int64_t slices = (vocab + kSlice - 1) / kSlice;
  if (slices < 1 || slices > kMostSlices) return Failed("sample logits: columns not 1 to 1048576");
  if (n > 65535) return Failed("sample logits: more than 65535 rows");
  if (n == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "sample") != ASHLAR_OK) return ASHLAR_FAILED;

  const int64_t groups = n * slices * kSliceGroups;
  auto* scratch = static_cast<Group*>(device->Scratch(groups * int64_t{sizeof(Group)}));
  if (scratch == nullptr) return Failed("sample: out of memory");
  SampleParams p{};
  p.logits = static_cast<const float*>(logits.data);
  p.pitch = logits.stride[0] / 4;
  p.aligned = logits.stride[0] % 16 == 0 && reinterpret_cast<uintptr_t>(logits.data) % 16 == 0;
  p.vocab = static_cast<int>(vocab);
  p.slices = static_cast<int>(slices);
  p.draws = draws;
  p.groups = scratch;
  p.ids = ids;
  constexpr int kAtOnce = kGroupThreads / kSliceThreads;
  const gpu::Grid grid{static_cast<unsigned>((slices + kAtOnce - 1) / kAtOnce),
                       static_cast<unsigned>(n)};
  const gpu::Error error = gpu::WithWave(device->facts.wave, [&](auto width) {
    constexpr int kWave = width;
    const gpu::Error first =
        gpu::Launch(StreamOf(device, stream), grid, kGroupThreads, 0, GroupKernel<kWave>, p);
    if (first != gpu::kSuccess) return first;
    return gpu::Launch(StreamOf(device, stream), {static_cast<unsigned>(n)}, kRowThreads,
                       sizeof(RowShared), RowKernel<kWave>, p);
  });
  return Checked(error, "sample");
}

int ResolveIds(ashlar_device* device, ashlar_stream* stream, int32_t* ids, const int32_t* from,
               int32_t n) {
  constexpr int kThreads = 128;
  if (n < 0) return Failed("resolve_ids: a negative number of ids");
  if (n == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "resolve_ids") != ASHLAR_OK) return ASHLAR_FAILED;
  const gpu::Grid grid{static_cast<unsigned>((n + kThreads - 1) / kThreads)};
  return Checked(
      gpu::Launch(StreamOf(device, stream), grid, kThreads, 0, ResolveKernel, ids, from, n),
      "resolve_ids");
}

}  // namespace ashlar::gpu_kernels
