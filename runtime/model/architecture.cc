#include "model/architecture.h"

namespace ashlar {
namespace {

constexpr Architecture kArchitectures[] = {
    {"llama", "llama", true, ReadLlama, ReadLlamaGguf},
    {"mistral", "", true, ReadLlama, nullptr},
    {"qwen2", "qwen2", true, ReadQwen2, ReadQwen2Gguf},
    {"qwen3", "qwen3", true, ReadQwen3, ReadQwen3Gguf},
    {"gemma3_text", "gemma3", true, ReadGemma3, ReadGemma3Gguf},
    {"bamba", "", false, ReadBamba, nullptr},
    {"bert", "", false, ReadBert, nullptr},
    {"cohere", "", false, ReadTiedDense, nullptr},
    {"cohere2", "", false, ReadCohere2, nullptr},
    {"deepseek_v2", "", false, ReadDeepSeekV2, nullptr},
    {"deepseek_v3", "", false, ReadDeepSeekV3, nullptr},
    {"deepseek_v32", "", false, ReadDeepSeekV3, nullptr},
    {"falcon_h1", "", false, ReadFalconH1, nullptr},
    {"gemma2", "", false, ReadGemma2, nullptr},
    {"gemma3n_text", "", false, ReadGemma3n, nullptr},
    {"gemma4_text", "", false, ReadGemma4, nullptr},
    {"glm4_moe", "", false, ReadGlm4Moe, nullptr},
    {"glm4_moe_lite", "", false, ReadGlm4MoeLite, nullptr},
    {"glm4v_moe_text", "", false, ReadGlm4Moe, nullptr},
    {"glm_moe_dsa", "", false, ReadDeepSeekV3, nullptr},
    {"gpt_oss", "", false, ReadGptOss, nullptr},
    {"granite", "", false, ReadDense, nullptr},
    {"granitemoehybrid", "", false, ReadGraniteHybrid, nullptr},
    {"jamba", "", false, ReadJamba, nullptr},
    {"kimi_k2", "", false, ReadDeepSeekV3, nullptr},
    {"kimi_linear", "", false, ReadKimiLinear, nullptr},
    {"lfm2", "", false, ReadLfm2, nullptr},
    {"llama4_text", "", false, ReadLlama4, nullptr},
    {"mamba2", "", false, ReadMamba2Model, nullptr},
    {"minimax", "", false, ReadMiniMax, nullptr},
    {"minimax_m1", "", false, ReadMiniMax, nullptr},
    {"minimax_m2", "", false, ReadMiniMaxM2, nullptr},
    {"minimax_text_01", "", false, ReadMiniMax, nullptr},
    {"ministral3", "", false, ReadDense, nullptr},
    {"mixtral", "", false, ReadMixtral, nullptr},
    {"modernbert", "", false, ReadModernBert, nullptr},
    {"nemotron_h", "", false, ReadNemotronH, nullptr},
    {"olmo2", "", false, ReadDense, nullptr},
    {"olmo3", "", false, ReadOlmo3, nullptr},
    {"phi3", "", false, ReadPhi3, nullptr},
    {"qwen2_moe", "", false, ReadQwen2Moe, nullptr},
    {"qwen3_5_moe_text", "", false, ReadQwen35Moe, nullptr},
    {"qwen3_5_text", "", false, ReadQwen35, nullptr},
    {"qwen3_moe", "", false, ReadQwen3Moe, nullptr},
    {"qwen3_next", "", false, ReadQwen3Next, nullptr},
    {"qwen3_vl_moe_text", "", false, ReadQwen3Moe, nullptr},
    {"qwen3_vl_text", "", false, ReadDense, nullptr},
    {"roberta", "", false, ReadBert, nullptr},
    {"seed_oss", "", false, ReadDense, nullptr},
    {"smollm3", "", false, ReadTiedDense, nullptr},
    {"whisper", "", false, ReadWhisper, nullptr},
    {"xlm-roberta", "", false, ReadBert, nullptr},
};

}  // namespace

std::span<const Architecture> Architectures() { return kArchitectures; }

}  // namespace ashlar
