// out[i] = x[rows[i]]. Bound by bytes.
#include <cstring>

#include "common/shapes.h"
#include "device.h"
#include "ops.h"

namespace ashlar::reference {

int Gather(ashlar_device*, ashlar_stream*, ashlar_tensor out, ashlar_tensor x,
           const int32_t* rows) {
  std::string problem = CheckMatrix("gather x", x, -1, -1);
  if (problem.empty()) problem = CheckMatrix("gather out", out, -1, x.shape[1]);
  if (!problem.empty()) return Failed(problem);
  for (int64_t i = 0; i < out.shape[0]; ++i) {
    if (rows[i] < 0 || rows[i] >= x.shape[0]) {
      return Failed("gather: row " + std::to_string(rows[i]) + " of " + std::to_string(x.shape[0]));
    }
    std::memcpy(Row(out, i), Row(x, rows[i]), static_cast<size_t>(x.shape[1]) * sizeof(float));
  }
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
