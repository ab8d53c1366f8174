// Where there is nothing of a vendor's own, portable kernels do everything.
#include "platform.h"

namespace ashlar::gpu_kernels {

std::unique_ptr<Blas> OpenBlas() { return nullptr; }
std::unique_ptr<Prefill> OpenPrefill(int) { return nullptr; }
std::unique_ptr<Prefill> OpenVendorPrefill() { return nullptr; }
std::unique_ptr<FusedStep> OpenFusedStep(int) { return nullptr; }
std::unique_ptr<FusedProducts> OpenFusedProducts(int) { return nullptr; }
std::unique_ptr<FusedLayers> OpenFusedLayers(int) { return nullptr; }

}  // namespace ashlar::gpu_kernels
