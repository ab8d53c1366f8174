// The architecture table: one row an architecture, its reader in a file of its own. Internal to
// model/.
#pragma once

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
// mixture.cc
void ReadMixtral(ConfigReader& reader, ModelConfig& config);
void ReadQwen3Moe(ConfigReader& reader, ModelConfig& config);

}  // namespace ashlar
