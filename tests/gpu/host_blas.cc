// Stands in for the vendor's library on the host executor, so that what is put around its products
// is checked there too: conversions, scales, residuals.
#include <vector>

#include "gpu/number.h"
#include "gpu/platform.h"

namespace ashlar::gpu_kernels {
namespace {

std::vector<float> Row(ashlar_dtype type, const void* matrix, int64_t pitch, int64_t row,
                       int64_t cols) {
  std::vector<float> values(static_cast<size_t>(cols));
  for (int64_t i = 0; i < cols; ++i) {
    values[static_cast<size_t>(i)] = LoadAs(type, matrix, row * pitch + i);
  }
  return values;
}

class HostBlas final : public Blas {
 public:
  std::string Matmul(gpu::Stream, const BlasMatmul& m) override {
    std::vector<std::vector<float>> x;
    for (int64_t t = 0; t < m.m; ++t) x.push_back(Row(m.type, m.x, m.x_pitch, t, m.k));
    for (int64_t n = 0; n < m.n; ++n) {
      const std::vector<float> row = Row(m.type, m.weight, m.weight_pitch, n, m.k);
      for (int64_t t = 0; t < m.m; ++t) {
        float sum = 0;
        for (size_t k = 0; k < row.size(); ++k) sum += row[k] * x[static_cast<size_t>(t)][k];
        if (m.type == ASHLAR_F8_E4M3) sum *= m.x_scales[t] * m.weight_scales[n];
        if (m.residual != nullptr) sum += LoadAs(m.out_type, m.residual, t * m.residual_pitch + n);
        StoreAs(m.out_type, m.out, t * m.out_pitch + n, sum);
      }
    }
    return "";
  }
};

}  // namespace

std::unique_ptr<Blas> OpenBlas() { return std::make_unique<HostBlas>(); }
std::unique_ptr<Prefill> OpenPrefill(int) { return nullptr; }

}  // namespace ashlar::gpu_kernels
