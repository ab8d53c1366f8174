// Where there is no vendor library, own kernels multiply everything.
#include "platform.h"

namespace ashlar::gpu_kernels {

std::unique_ptr<Blas> OpenBlas() { return nullptr; }

}  // namespace ashlar::gpu_kernels
