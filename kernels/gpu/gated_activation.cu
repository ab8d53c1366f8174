// out = act(gate) * up. Bound by bytes.
#include <cmath>

#include "device.h"
#include "number.h"
#include "ops.h"
#include "shapes.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;

GPU_DEVICE float Silu(float x) { return x / (1.0f + expf(-x)); }

// The tanh approximation that Gemma names gelu_pytorch_tanh; 0.79788... is sqrt(2 / pi).
GPU_DEVICE float GeluTanh(float x) {
  return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}

GPU_KERNEL void GatedActivationKernel(const ashlar_tensor out, const ashlar_tensor gate_up,
                                      ashlar_activation activation) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const int col = gpu::BlockX() * gpu::ThreadsX() + gpu::ThreadX();
  if (col >= out.shape[1]) return;
  for (int64_t row = gpu::BlockY(); row < out.shape[0]; row += 65535) {
    const char* from = static_cast<const char*>(gate_up.data) + row * gate_up.stride[0];
    const float gate = LoadAs(gate_up.dtype, from, col);
    const float up = LoadAs(gate_up.dtype, from, out.shape[1] + col);
    const float active = activation == ASHLAR_SILU ? Silu(gate) : GeluTanh(gate);
    StoreAs(out.dtype, static_cast<char*>(out.data) + row * out.stride[0], col, active * up);
  }
}

}  // namespace

int GatedActivation(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out,
                    ashlar_tensor gate_up, ashlar_activation activation) {
  std::string problem = CheckMatrix("gated_activation out", out, -1, -1);
  if (problem.empty()) {
    problem = CheckMatrix("gated_activation gate_up", gate_up, out.shape[0], 2 * out.shape[1]);
  }
  if (problem.empty() && activation != ASHLAR_SILU && activation != ASHLAR_GELU_TANH) {
    problem = "gated_activation: unknown activation";
  }
  if (!problem.empty()) return Failed(problem);
  if (out.shape[0] == 0 || out.shape[1] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "gated_activation") != ASHLAR_OK) return ASHLAR_FAILED;
  const gpu::Grid grid{static_cast<unsigned>((out.shape[1] + kThreads - 1) / kThreads),
                       static_cast<unsigned>(out.shape[0] < 65535 ? out.shape[0] : 65535)};
  return Checked(gpu::Launch(StreamOf(stream), grid, kThreads, 0, GatedActivationKernel, out,
                             gate_up, activation),
                 "gated_activation");
}

}  // namespace ashlar::gpu_kernels
