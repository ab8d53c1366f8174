// quantization_config of config.json: the methods whose size is known, for planning. Internal to
// model/.
#pragma once

#include "model/config.h"
#include "model/config_reader.h"

namespace ashlar {

// Reads reader's quantization_config; an unknown method or width is reported by name. No such key:
// not quantised.
Quantization ReadQuantization(ConfigReader& reader);

}  // namespace ashlar
