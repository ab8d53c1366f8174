// out = act(gate) * up. Bound by bytes.
#include <algorithm>

#include "activation.h"
#include "common/shapes.h"
#include "device.h"
#include "number.h"
#include "ops.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kThreads = 256;

constexpr unsigned kMostBlocks = 65535;  // of a grid's second dimension

GPU_KERNEL void GatedActivationKernel(const ashlar_tensor out, const ashlar_tensor gate_up,
                                      ashlar_activation activation) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  const int64_t col = int64_t{gpu::BlockX()} * kThreads + gpu::ThreadX(), width = out.shape[1];
  if (col >= width) return;
  for (int64_t row = gpu::BlockY(); row < out.shape[0]; row += kMostBlocks) {
    const char* from = static_cast<const char*>(gate_up.data) + row * gate_up.stride[0];
    char* to = static_cast<char*>(out.data) + row * out.stride[0];
    const float gate = LoadAs(gate_up.dtype, from, col);
    const float up = LoadAs(gate_up.dtype, from, width + col);
    StoreAs(out.dtype, to, col, Activate(activation, gate) * up);
  }
}

// A thread has eight neighbouring columns of kRows rows, all on their way at once.
template <class T, int kRows>
GPU_KERNEL void GPU_BOUNDS(kThreads, 3)
    GatedEightsKernel(const ashlar_tensor out, const ashlar_tensor gate_up,
                      ashlar_activation activation) {
  gpu::ReleaseNext();
  gpu::WaitForPrevious();
  constexpr ashlar_dtype kIn = std::is_same_v<T, BF16> ? ASHLAR_BF16 : ASHLAR_F16;
  const int64_t col = (int64_t{gpu::BlockX()} * kThreads + gpu::ThreadX()) * 8;
  const int64_t rows = out.shape[0], width = out.shape[1];
  if (col >= width) return;
  const char* from = static_cast<const char*>(gate_up.data) + 2 * col;
  for (int64_t first = int64_t{gpu::BlockY()} * kRows; first < rows; first += kMostBlocks * kRows) {
    gpu::Vector gates[kRows], ups[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = first + r < rows ? first + r : rows - 1;
      const char* at = from + row * gate_up.stride[0];
      gates[r] = *reinterpret_cast<const gpu::Vector*>(at);
      ups[r] = *reinterpret_cast<const gpu::Vector*>(at + 2 * width);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (first + r >= rows) break;
      float gate[8], up[8];
      LoadFloats(kIn, &gates[r], 0, gate);
      LoadFloats(kIn, &ups[r], 0, up);
      for (int i = 0; i < 8; ++i) gate[i] = Activate(activation, gate[i]) * up[i];
      char* to = static_cast<char*>(out.data) + (first + r) * out.stride[0];
      StoreFloats(out.dtype, to, col, gate);
    }
  }
}

gpu::Error Launch(const gpu::Facts& facts, gpu::Stream stream, const ashlar_tensor& out,
                  const ashlar_tensor& gate_up, ashlar_activation activation) {
  const auto launch = [&](int64_t each, int64_t rows, auto* kernel) {
    const int64_t columns = each * kThreads, high = (out.shape[0] + rows - 1) / rows;
    const gpu::Grid grid{static_cast<unsigned>((out.shape[1] + columns - 1) / columns),
                         static_cast<unsigned>(std::min<int64_t>(high, kMostBlocks))};
    return gpu::Launch(stream, grid, kThreads, 0, kernel, out, gate_up, activation);
  };
  constexpr int kRows = 4;
  constexpr int64_t kEnough = 2048;  // threads on a multiprocessor, of one row each
  if (!HasEights(out) || !HasEights(gate_up) || gate_up.dtype == ASHLAR_F32) {
    return launch(1, 1, GatedActivationKernel);
  }
  const bool many = out.shape[0] * out.shape[1] / 8 >= kEnough * facts.multiprocessors;
  const bool is_bf16 = gate_up.dtype == ASHLAR_BF16;
  if (many) {
    return launch(8, kRows,
                  is_bf16 ? GatedEightsKernel<BF16, kRows> : GatedEightsKernel<F16, kRows>);
  }
  return launch(8, 1, is_bf16 ? GatedEightsKernel<BF16, 1> : GatedEightsKernel<F16, 1>);
}

}  // namespace

int GatedActivation(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out,
                    ashlar_tensor gate_up, ashlar_activation activation) {
  std::string problem = CheckMatrix("gated_activation out", out, -1, -1, kFloats);
  if (problem.empty()) {
    problem =
        CheckMatrix("gated_activation gate_up", gate_up, out.shape[0], 2 * out.shape[1], kFloats);
  }
  if (problem.empty() && activation != ASHLAR_SILU && activation != ASHLAR_GELU_TANH) {
    problem = "gated_activation: unknown activation";
  }
  if (!problem.empty()) return Failed(problem);
  if (out.shape[0] == 0 || out.shape[1] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "gated_activation") != ASHLAR_OK) return ASHLAR_FAILED;
  return Checked(Launch(device->facts, StreamOf(device, stream), out, gate_up, activation),
                 "gated_activation");
}

}  // namespace ashlar::gpu_kernels
