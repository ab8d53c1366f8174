// The reference plugin with whole layers as one op, which it makes of its ops.
#include <cstdint>
#include <vector>

#include "reference_table.h"

extern "C" {
// 0 leaves layers to their ops, 1 takes them, 2 fails.
int ashlar_test_answer = 0;
// Calls, and those among them of a step that they are not for.
int ashlar_test_calls = 0, ashlar_test_wrong_calls = 0;
const ashlar_plugin* ashlar_plugin_table(void);
}

namespace {

ashlar_tensor Matrix(std::vector<float>& values, int64_t rows, int64_t cols) {
  values.resize(static_cast<size_t>(rows * cols));
  return {values.data(), ASHLAR_F32, 2, {rows, cols}, {cols * 4, 4}};
}

int Project(ashlar_device* device, ashlar_stream* stream, const ashlar_projection& a) {
  const ashlar_plugin& ops = ReferenceTable();
  const int64_t rows = a.x.shape[0], cols = a.out.shape[1] * (a.gated != 0 ? 2 : 1);
  std::vector<float> normed, product;
  ashlar_tensor x = a.x, out = a.out;
  int failed = 0;
  if (a.norm.data != nullptr) {
    x = Matrix(normed, rows, x.shape[1]);
    failed += ops.rms_norm(device, stream, x, a.x, a.norm, a.eps);
  }
  if (a.gated != 0 || a.residual.data != nullptr) out = Matrix(product, rows, cols);
  failed += ops.matmul(device, stream, out, x, a.weight, a.bias);
  if (a.gated != 0) failed += ops.gated_activation(device, stream, a.out, out, a.activation);
  if (a.residual.data != nullptr) failed += ops.add(device, stream, a.out, out);
  return failed;
}

int Layers(ashlar_device* device, ashlar_stream* stream, const ashlar_layer* layers, int32_t count,
           int32_t* taken) {
  ++ashlar_test_calls;
  *taken = ashlar_test_answer == 1 ? 1 : 0;
  if (ashlar_test_answer != 1) return ashlar_test_answer == 0 ? ASHLAR_OK : ASHLAR_FAILED;
  int failed = 0;
  for (int32_t i = 0; i < count; ++i) {
    const ashlar_layer& l = layers[i];
    ashlar_test_wrong_calls += l.attention.max_query == 1 ? 0 : 1;
    failed += Project(device, stream, l.qkv);
    failed += ReferenceTable().qkv_prepare(device, stream, &l.prepare);
    failed += ReferenceTable().attention(device, stream, l.row, &l.attention);
    for (const ashlar_projection* a : {&l.output, &l.gate_up, &l.down}) {
      failed += Project(device, stream, *a);
    }
  }
  return failed == 0 ? ASHLAR_OK : ASHLAR_FAILED;
}

}  // namespace

const ashlar_plugin* ashlar_plugin_table(void) {
  static const ashlar_plugin table = [] {
    ashlar_plugin copy = ReferenceTable();
    copy.layers = Layers;
    return copy;
  }();
  return &table;
}
