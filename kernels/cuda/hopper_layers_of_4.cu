#include "hopper_layers_instances.h"

namespace ashlar::hopper {

template struct LayersRanks<4>;

}  // namespace ashlar::hopper
