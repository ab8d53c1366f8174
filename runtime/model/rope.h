// Inverse frequencies of rotary embeddings for each scaling that we carry out. Formulas:
// transformers modeling_rope_utils; YaRN: arXiv 2309.00071; llama3: the Llama 3.1 release notes.
// Internal to model/.
#pragma once

#include "model/config.h"
#include "model/config_reader.h"

namespace ashlar {

// Reads theta and the scaling from rope_parameters (also nested by layer type), rope_scaling, or
// the flat rope_theta. An unknown scaling is reported by name. `rotary_dim` is even.
Rope ReadRope(ConfigReader& reader, int rotary_dim, double default_theta);
// From one object of rope settings.
Rope RopeFrom(ConfigReader& settings, int rotary_dim, double theta, int64_t context_length);
// From GGUF: rope.freq_base, rope.scaling.*, and the rope_freqs.weight tensor (Llama 3's factors).
Rope ReadGgufRope(ConfigReader& reader, int rotary_dim);

// Reports a scaling that no model is known to have, without working it out: for planning.
void CheckRopeTypes(ConfigReader& reader);

// theta^(-2i/d) for i in [0, d/2), computed in double.
std::vector<float> PlainFrequencies(double theta, int rotary_dim, double divisor = 1);

}  // namespace ashlar
