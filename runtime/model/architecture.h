// The architecture table: one row an architecture, its reader in the file of its family. Internal
// to model/.
#pragma once

#include <span>
#include <string_view>

#include "model/config.h"

namespace ashlar {

class ConfigReader;

struct Architecture {
  std::string_view name;       // config.json model_type
  std::string_view gguf_name;  // general.architecture; "" when GGUF is not read
  bool has_forward;            // false: geometry only, `plan` works and `serve` refuses
  // Fill `config` and report mistakes to the reader, never stopping at the first.
  void (*from_config)(ConfigReader& reader, ModelConfig& config);
  void (*from_gguf)(ConfigReader& reader, ModelConfig& config);
};

// Those with a forward pass first.
std::span<const Architecture> Architectures();

// llama.cc
void ReadLlama(ConfigReader& reader, ModelConfig& config);
void ReadQwen2(ConfigReader& reader, ModelConfig& config);
void ReadQwen3(ConfigReader& reader, ModelConfig& config);
void ReadLlamaGguf(ConfigReader& reader, ModelConfig& config);
void ReadQwen2Gguf(ConfigReader& reader, ModelConfig& config);
void ReadQwen3Gguf(ConfigReader& reader, ModelConfig& config);
// gemma3.cc
void ReadGemma3(ConfigReader& reader, ModelConfig& config);
void ReadGemma3Gguf(ConfigReader& reader, ModelConfig& config);
// dense.cc: the first two for families with nothing peculiar
void ReadDense(ConfigReader& reader, ModelConfig& config);
void ReadTiedDense(ConfigReader& reader, ModelConfig& config);
void ReadCohere2(ConfigReader& reader, ModelConfig& config);
void ReadGemma2(ConfigReader& reader, ModelConfig& config);
void ReadOlmo3(ConfigReader& reader, ModelConfig& config);
void ReadPhi3(ConfigReader& reader, ModelConfig& config);
// encoders.cc
void ReadBert(ConfigReader& reader, ModelConfig& config);
void ReadModernBert(ConfigReader& reader, ModelConfig& config);
void ReadWhisper(ConfigReader& reader, ModelConfig& config);
// gated_delta.cc
void ReadKimiLinear(ConfigReader& reader, ModelConfig& config);
void ReadQwen35(ConfigReader& reader, ModelConfig& config);
void ReadQwen35Moe(ConfigReader& reader, ModelConfig& config);
void ReadQwen3Next(ConfigReader& reader, ModelConfig& config);
// gemma_nested.cc
void ReadGemma3n(ConfigReader& reader, ModelConfig& config);
void ReadGemma4(ConfigReader& reader, ModelConfig& config);
// hybrid.cc
void ReadBamba(ConfigReader& reader, ModelConfig& config);
void ReadFalconH1(ConfigReader& reader, ModelConfig& config);
void ReadGraniteHybrid(ConfigReader& reader, ModelConfig& config);
void ReadJamba(ConfigReader& reader, ModelConfig& config);
void ReadMamba2Model(ConfigReader& reader, ModelConfig& config);
void ReadNemotronH(ConfigReader& reader, ModelConfig& config);
// latent.cc
void ReadDeepSeekV2(ConfigReader& reader, ModelConfig& config);
void ReadDeepSeekV3(ConfigReader& reader, ModelConfig& config);
void ReadGlm4MoeLite(ConfigReader& reader, ModelConfig& config);
// lightning.cc
void ReadMiniMax(ConfigReader& reader, ModelConfig& config);
// mixture.cc
void ReadGlm4Moe(ConfigReader& reader, ModelConfig& config);
void ReadGptOss(ConfigReader& reader, ModelConfig& config);
void ReadLlama4(ConfigReader& reader, ModelConfig& config);
void ReadMiniMaxM2(ConfigReader& reader, ModelConfig& config);
void ReadMixtral(ConfigReader& reader, ModelConfig& config);
void ReadQwen2Moe(ConfigReader& reader, ModelConfig& config);
void ReadQwen3Moe(ConfigReader& reader, ModelConfig& config);
// short_convolution.cc
void ReadLfm2(ConfigReader& reader, ModelConfig& config);

}  // namespace ashlar
