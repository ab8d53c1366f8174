// out = x / sqrt(mean(x^2) + eps) * weight, by rows. The mean and its root are computed in double.
// Bound by bytes.
#include <cmath>

#include "common/shapes.h"
#include "device.h"
#include "norm.h"
#include "numbers.h"
#include "ops.h"

namespace ashlar::reference {

void NormRow(const float* x, const float* weight, float eps, int64_t cols, float* out) {
  const double mean = Dot(x, x, cols) / static_cast<double>(cols);
  const double scale = 1.0 / std::sqrt(mean + static_cast<double>(eps));
  for (int64_t i = 0; i < cols; ++i) {
    out[i] = static_cast<float>(static_cast<double>(x[i]) * scale * static_cast<double>(weight[i]));
  }
}

int RmsNorm(ashlar_device*, ashlar_stream*, ashlar_tensor out, ashlar_tensor x,
            ashlar_tensor weight, float eps) {
  std::string problem = CheckMatrix("rms_norm x", x, -1, -1);
  if (problem.empty()) problem = CheckMatrix("rms_norm out", out, x.shape[0], x.shape[1]);
  if (problem.empty()) problem = CheckVector("rms_norm weight", weight, x.shape[1]);
  if (!problem.empty()) return Failed(problem);
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    NormRow(Row(x, i), Row(weight, 0), eps, x.shape[1], Row(out, i));
  }
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
