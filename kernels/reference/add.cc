// sum += x. Bound by bytes.
#include "common/shapes.h"
#include "device.h"
#include "ops.h"

namespace ashlar::reference {

int Add(ashlar_device*, ashlar_stream*, ashlar_tensor sum, ashlar_tensor x) {
  std::string problem = CheckMatrix("add x", x, -1, -1);
  if (problem.empty()) problem = CheckMatrix("add sum", sum, x.shape[0], x.shape[1]);
  if (!problem.empty()) return Failed(problem);
  for (int64_t i = 0; i < x.shape[0]; ++i) {
    for (int64_t col = 0; col < x.shape[1]; ++col) Row(sum, i)[col] += Row(x, i)[col];
  }
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
