#include "hopper_layers_instances.h"

namespace ashlar::hopper {

template struct LayersRanks<8>;

}  // namespace ashlar::hopper
