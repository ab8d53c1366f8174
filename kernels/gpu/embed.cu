// out[i] = scale * row ids[i] of the weight; NaN for an id that is no row. Bound by bytes.
#include <cmath>

#include "common/shapes.h"
#include "device.h"
#include "number.h"
#include "ops.h"
#include "weight.h"

namespace ashlar::gpu_kernels {
namespace {

struct EmbedParams {
  struct Part {
    const void* data;
    ashlar_dtype dtype;
    int64_t first_row, rows;
  } parts[ASHLAR_MAX_PARTS];
  int part_count;
  int64_t pitch;
  int cols;
  const int32_t* ids;
  float scale;
  void* out;
  ashlar_dtype out_dtype;
  int64_t out_row_bytes;
  bool eights;
};

GPU_KERNEL void EmbedKernel(const EmbedParams p) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const int64_t id = p.ids[gpu::BlockX()];
  const void* row = nullptr;
  ashlar_dtype dtype = ASHLAR_F32;
  for (int i = 0; i < p.part_count; ++i) {
    const int64_t at = id - p.parts[i].first_row;
    if (at < 0 || at >= p.parts[i].rows) continue;
    dtype = p.parts[i].dtype;
    row = static_cast<const char*>(p.parts[i].data) + at * p.pitch * ElementBytes(dtype);
  }
  char* out = static_cast<char*>(p.out) + gpu::BlockX() * p.out_row_bytes;
  const bool eights = p.eights && row != nullptr;
  for (int col = 8 * gpu::ThreadX(); eights && col < p.cols; col += 8 * gpu::ThreadsX()) {
    float values[8];
    LoadFloats(dtype, row, col, values);
    for (float& value : values) value *= p.scale;
    StoreFloats(p.out_dtype, out, col, values);
  }
  for (int col = gpu::ThreadX(); !eights && col < p.cols; col += gpu::ThreadsX()) {
    const float value = row == nullptr ? NAN : LoadAs(dtype, row, col) * p.scale;
    StoreAs(p.out_dtype, out, col, value);
  }
}

}  // namespace

int Embed(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out,
          const ashlar_weight* weight, const int32_t* ids, float scale) {
  const std::string problem = CheckMatrix("embed out", out, -1, weight->cols, kFloats);
  if (!problem.empty()) return Failed(problem);
  if (out.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "embed") != ASHLAR_OK) return ASHLAR_FAILED;
  EmbedParams p{};
  for (const ashlar_weight::Part& part : weight->parts) {
    p.parts[p.part_count++] = {part.data, part.dtype, part.first_row, part.rows};
  }
  p.pitch = weight->pitch;
  p.cols = static_cast<int>(weight->cols);
  p.ids = ids;
  p.scale = scale;
  p.out = out.data;
  p.out_dtype = out.dtype;
  p.out_row_bytes = out.stride[0];
  p.eights = HasEights(out);
  return Checked(gpu::Launch(StreamOf(device, stream), {static_cast<unsigned>(out.shape[0])}, 256,
                             0, EmbedKernel, p),
                 "embed");
}

}  // namespace ashlar::gpu_kernels
