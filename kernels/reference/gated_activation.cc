// out = act(gate) * up, computed in double. Bound by bytes.
#include <cmath>

#include "common/shapes.h"
#include "device.h"
#include "ops.h"

namespace ashlar::reference {
namespace {

double Silu(double x) { return x / (1.0 + std::exp(-x)); }

// The tanh approximation that Gemma names gelu_pytorch_tanh; 0.79788... is sqrt(2 / pi).
double GeluTanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

}  // namespace

int GatedActivation(ashlar_device* device, ashlar_stream*, ashlar_tensor out, ashlar_tensor gate_up,
                    ashlar_activation activation) {
  std::string problem = CheckMatrix("gated_activation out", out, -1, -1);
  if (problem.empty()) {
    problem = CheckMatrix("gated_activation gate_up", gate_up, out.shape[0], 2 * out.shape[1]);
  }
  if (problem.empty() && activation != ASHLAR_SILU && activation != ASHLAR_GELU_TANH) {
    problem = "gated_activation: unknown activation";
  }
  if (!problem.empty()) return Failed(problem);
  const int64_t width = out.shape[1];
  device->pool.Split(out.shape[0], [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* gate = Row(gate_up, i);
      const float* up = gate + width;
      for (int64_t col = 0; col < width; ++col) {
        const double x = static_cast<double>(gate[col]);
        const double active = activation == ASHLAR_SILU ? Silu(x) : GeluTanh(x);
        Row(out, i)[col] = static_cast<float>(active * static_cast<double>(up[col]));
      }
    }
  });
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
