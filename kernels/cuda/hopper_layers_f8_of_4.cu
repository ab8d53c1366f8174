#include "hopper_layers_instances.h"

namespace ashlar::hopper {

template struct LayersOf<gpu_kernels::F8, 4>;

}  // namespace ashlar::hopper
