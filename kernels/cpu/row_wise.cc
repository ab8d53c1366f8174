// Ops that take each row by itself.
#include <string.h>

#include "common/shapes.h"
#include "ops.h"

namespace ashlar::cpu {

int Gather(ashlar_device& device, const ashlar_tensor& out, const ashlar_tensor& x,
           const int32_t* rows) {
  std::string wrong = CheckMatrix("gather x", x, -1, -1);
  if (wrong.empty()) wrong = CheckMatrix("gather out", out, -1, x.shape[1]);
  if (!wrong.empty()) return Failed(wrong);
  for (int64_t i = 0; i < out.shape[0]; ++i)
    if (rows[i] < 0 || rows[i] >= x.shape[0])
      return Failed("gather: row " + std::to_string(rows[i]) + " of " + std::to_string(x.shape[0]));
  const int64_t bytes = x.shape[1] * 4;
  ForRanges(device, out.shape[0], bytes, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) memcpy(Row(out, i), Row(x, rows[i]), bytes);
  });
  return ASHLAR_OK;
}

int RmsNorm(ashlar_device& device, const ashlar_tensor& out, const ashlar_tensor& x,
            const ashlar_tensor& weight, float eps) {
  std::string wrong = CheckMatrix("rms_norm x", x, -1, -1);
  if (wrong.empty()) wrong = CheckMatrix("rms_norm out", out, x.shape[0], x.shape[1]);
  if (wrong.empty()) wrong = CheckVector("rms_norm weight", weight, x.shape[1]);
  if (!wrong.empty()) return Failed(wrong);
  const int64_t n = x.shape[1];
  ForRanges(device, x.shape[0], n * 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      device.kernels.rms_norm_row(Row(out, i), Row(x, i), Row(weight, 0), n, eps);
  });
  return ASHLAR_OK;
}

int Add(ashlar_device& device, const ashlar_tensor& sum, const ashlar_tensor& x) {
  std::string wrong = CheckMatrix("add x", x, -1, -1);
  if (wrong.empty()) wrong = CheckMatrix("add sum", sum, x.shape[0], x.shape[1]);
  if (!wrong.empty()) return Failed(wrong);
  const int64_t n = x.shape[1];
  ForRanges(device, x.shape[0], n * 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) device.kernels.add_row(Row(sum, i), Row(x, i), n);
  });
  return ASHLAR_OK;
}

int GatedActivation(ashlar_device& device, const ashlar_tensor& out, const ashlar_tensor& gate_up,
                    ashlar_activation activation) {
  std::string wrong = CheckMatrix("gated_activation out", out, -1, -1);
  if (wrong.empty())
    wrong = CheckMatrix("gated_activation gate_up", gate_up, out.shape[0], 2 * out.shape[1]);
  if (wrong.empty() && activation != ASHLAR_SILU && activation != ASHLAR_GELU_TANH)
    wrong = "gated_activation: unknown activation";
  if (!wrong.empty()) return Failed(wrong);
  const auto row =
      activation == ASHLAR_SILU ? device.kernels.silu_row : device.kernels.gelu_tanh_row;
  const int64_t n = out.shape[1];
  // Pieces of rows, so that one long row also fills all threads.
  constexpr int64_t kPiece = 1024;
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  ForRanges(device, out.shape[0] * pieces, kPiece * 16, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i % pieces * kPiece, count = n - from < kPiece ? n - from : kPiece;
      const float* gate = Row(gate_up, i / pieces) + from;
      row(Row(out, i / pieces) + from, gate, gate + n, count);
    }
  });
  return ASHLAR_OK;
}

int CopyBlocks(ashlar_device& device, void* base, const int64_t* pairs, int32_t n, int64_t bytes) {
  (void)device;
  if (n < 0 || bytes < 0) return Failed("copy_blocks: a negative count or size");
  char* memory = static_cast<char*>(base);
  for (int32_t i = 0; i < n; ++i) {
    if (pairs[2 * i] < 0 || pairs[2 * i + 1] < 0) return Failed("copy_blocks: a negative offset");
    // In order: a later pair may read what an earlier one wrote.
    memmove(memory + pairs[2 * i + 1], memory + pairs[2 * i], bytes);
  }
  return ASHLAR_OK;
}

}  // namespace ashlar::cpu
