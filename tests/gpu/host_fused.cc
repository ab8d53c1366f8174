// Stands in for one architecture's own products on the host executor, so that what is put around
// them is checked there too. It leaves even numbers of tokens to the portable kernels.
#include "gpu/activation.h"
#include "gpu/fused_product.h"
#include "gpu/number.h"
#include "gpu/platform.h"

namespace ashlar::gpu_kernels {
namespace {

class HostFused final : public FusedProducts {
 public:
  bool Takes(const FusedProductParams& p) const override {
    return p.tokens % 2 != 0 && p.tokens < 256;
  }

  gpu::Error Launch(gpu::Stream, const FusedProductParams& p) override {
    for (int token = 0; token < p.tokens; ++token) {
      char* const out = static_cast<char*>(p.out) + token * p.out_row_bytes;
      const char* const added = static_cast<const char*>(p.residual) + token * p.residual_row_bytes;
      for (int row = 0; row < p.rows; ++row) {
        float value = Multiply(p, 0, row, token);
        if (p.gated != 0) value = Activate(p.activation, value) * Multiply(p, 1, row, token);
        if (p.bias != nullptr) value += p.bias[row];
        if (p.residual != nullptr) value += LoadAs(p.out_dtype, added, row);
        StoreAs(p.out_dtype, out, row, value);
      }
    }
    return gpu::kSuccess;
  }

 private:
  static float Multiply(const FusedProductParams& p, int which, int row, int token) {
    const char* const x = static_cast<const char*>(p.x) + token * p.x_row_bytes;
    float sum = 0;
    for (int k = 0; k < p.cols; ++k) {
      sum += LoadAs(p.type, p.weight[which], row * p.pitch + k) * LoadAs(p.type, x, k);
    }
    return p.type == ASHLAR_F8_E4M3 ? sum * p.scales[which][row] * p.x_scales[token] : sum;
  }
};

}  // namespace

std::unique_ptr<FusedProducts> OpenFusedProducts(int) { return std::make_unique<HostFused>(); }

}  // namespace ashlar::gpu_kernels
