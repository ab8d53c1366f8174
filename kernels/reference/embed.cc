// out[i] = scale * row ids[i] of the embedding. Bound by bytes.
#include "common/shapes.h"
#include "device.h"
#include "ops.h"
#include "weight.h"

namespace ashlar::reference {

int Embed(ashlar_device* device, ashlar_stream*, ashlar_tensor out, const ashlar_weight* weight,
          const int32_t* ids, float scale) {
  const std::string problem = CheckMatrix("embed out", out, -1, weight->desc.cols);
  if (!problem.empty()) return Failed(problem);
  for (int64_t i = 0; i < out.shape[0]; ++i) {
    if (ids[i] < 0 || ids[i] >= weight->rows) {
      return Failed("embed: id " + std::to_string(ids[i]) + " of " + std::to_string(weight->rows));
    }
  }
  const int64_t cols = weight->desc.cols;
  device->pool.Split(out.shape[0], [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* row = Row(out, i);
      weight->ReadRow(ids[i], row);
      for (int64_t col = 0; col < cols; ++col) row[col] *= scale;
    }
  });
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
