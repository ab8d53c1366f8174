// out = act(gate) * up. Bound by bytes.
#include <algorithm>

#include "activation.h"
#include "device.h"
#include "number.h"
#include "ops.h"
#include "shapes.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;

constexpr unsigned kMostBlocks = 65535;  // of a grid's second dimension

// A thread has kEach neighbouring columns: one, or eight where rows are made of aligned eights.
template <int kEach>
GPU_KERNEL void GatedActivationKernel(const ashlar_tensor out, const ashlar_tensor gate_up,
                                      ashlar_activation activation) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const int64_t col = (int64_t{gpu::BlockX()} * kThreads + gpu::ThreadX()) * kEach;
  const int64_t width = out.shape[1];
  if (col >= width) return;
  for (int64_t row = gpu::BlockY(); row < out.shape[0]; row += kMostBlocks) {
    const char* from = static_cast<const char*>(gate_up.data) + row * gate_up.stride[0];
    char* to = static_cast<char*>(out.data) + row * out.stride[0];
    if constexpr (kEach == 8) {
      float gate[8], up[8];
      LoadFloats(gate_up.dtype, from, col, gate);
      LoadFloats(gate_up.dtype, from, width + col, up);
      for (int i = 0; i < 8; ++i) gate[i] = Activate(activation, gate[i]) * up[i];
      StoreFloats(out.dtype, to, col, gate);
    } else {
      const float gate = LoadAs(gate_up.dtype, from, col);
      const float up = LoadAs(gate_up.dtype, from, width + col);
      StoreAs(out.dtype, to, col, Activate(activation, gate) * up);
    }
  }
}

template <int kEach>
gpu::Error Launch(gpu::Stream stream, const ashlar_tensor& out, const ashlar_tensor& gate_up,
                  ashlar_activation activation) {
  constexpr int64_t kColumns = int64_t{kThreads} * kEach;
  const auto rows = static_cast<unsigned>(std::min<int64_t>(out.shape[0], kMostBlocks));
  const gpu::Grid grid{static_cast<unsigned>((out.shape[1] + kColumns - 1) / kColumns), rows};
  return gpu::Launch(stream, grid, kThreads, 0, GatedActivationKernel<kEach>, out, gate_up,
                     activation);
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
  const gpu::Error error = HasEights(out) && HasEights(gate_up)
                               ? Launch<8>(StreamOf(stream), out, gate_up, activation)
                               : Launch<1>(StreamOf(stream), out, gate_up, activation);
  return Checked(error, "gated_activation");
}

}  // namespace ashlar::gpu_kernels
