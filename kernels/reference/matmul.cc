// out = x * weight^T + bias. Each row of the weight is read once as floats and met with every row
// of x; products are summed in double. Bound by flops.
#include <vector>

#include "common/shapes.h"
#include "device.h"
#include "numbers.h"
#include "ops.h"
#include "weight.h"

namespace ashlar::reference {

int Matmul(ashlar_device* device, ashlar_stream*, ashlar_tensor out, ashlar_tensor x,
           const ashlar_weight* weight, ashlar_tensor bias) {
  const int64_t cols = weight->desc.cols;
  std::string problem = CheckMatrix("matmul x", x, -1, cols);
  if (problem.empty()) problem = CheckMatrix("matmul out", out, x.shape[0], weight->rows);
  if (problem.empty() && bias.data != nullptr) {
    problem = CheckVector("matmul bias", bias, weight->rows);
  }
  if (!problem.empty()) return Failed(problem);
  device->pool.Split(weight->rows, [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(cols));
    for (int64_t n = begin; n < end; ++n) {
      weight->ReadRow(n, row.data());
      const double base = bias.data == nullptr ? 0.0 : static_cast<double>(Row(bias, 0)[n]);
      for (int64_t m = 0; m < x.shape[0]; ++m) {
        Row(out, m)[n] = static_cast<float>(Dot(Row(x, m), row.data(), cols) + base);
      }
    }
  });
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
