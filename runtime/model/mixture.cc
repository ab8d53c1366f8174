// Mixture-of-experts decoders: geometry only, so that a cluster can be planned for them.
#include "model/architecture.h"
#include "model/common.h"
#include "model/rope.h"

namespace ashlar {

void ReadMixtral(ConfigReader& reader, ModelConfig& config) { ReadLlama(reader, config); }

void ReadQwen3Moe(ConfigReader& reader, ModelConfig& config) { ReadQwen3(reader, config); }

}  // namespace ashlar
