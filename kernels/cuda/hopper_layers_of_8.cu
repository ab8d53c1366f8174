#include "hopper_layers_instances.h"

namespace ashlar::hopper {

template struct LayersOf<gpu_kernels::BF16, 8>;

}  // namespace ashlar::hopper
