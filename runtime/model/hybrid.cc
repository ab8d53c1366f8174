// Hybrids of Mamba with full attention. transformers before and after version 5 name the same
// layers differently; both are read.
#include <algorithm>

#include "model/architecture.h"
#include "model/common.h"
#include "model/states.h"
#include "model/weight_count.h"

namespace ashlar {
namespace {

bool IsAttention(std::string_view type) { return type == "attention" || type == "full_attention"; }

// The keys of Bamba, Granite and Falcon-H1. `inner` is the mixer's width, which its heads fill.
Mamba2 ReadMamba2(ConfigReader& reader, const ModelConfig& config, int64_t inner) {
  Mamba2 mixer;
  mixer.heads = reader.Integer("mamba_n_heads", 1, kMaxRank);
  int64_t share = std::clamp<int64_t>(inner / mixer.heads, 1, kMaxRank);
  mixer.head_dim = reader.IntegerOrAuto("mamba_d_head", 1, kMaxRank, share);
  mixer.groups = reader.Integer("mamba_n_groups", 1, kMaxRank, 1);
  mixer.state = reader.Integer("mamba_d_state", 1, kMaxRank);
  mixer.kernel = reader.Integer("mamba_d_conv", 2, kMaxKernel, 4);
  mixer.state_dtype = StateDType(reader, "mamba_ssm_cache_dtype", config);
  if (mixer.heads * mixer.head_dim != inner) {
    reader.Refuse("mamba_n_heads", std::to_string(mixer.heads),
                  "heads that fill a mixer of " + std::to_string(inner) + " channels",
                  "use the model's original files");
  }
  return mixer;
}

int64_t ExpandedWidth(ConfigReader& reader, const ModelConfig& config) {
  return config.hidden * reader.Integer("mamba_expand", 1, kMaxKernel, 2);
}

void AddMamba2(ModelConfig& config, const Mamba2& mixer) {
  config.layers.push_back(Mamba2Layer(config, mixer));
  CountMamba2(config, mixer);
}

void AddAttention(ModelConfig& config, const LayerSpec& attention) {
  config.layers.push_back(attention);
  CountAttention(config, attention);
}

void AddMixer(ModelConfig& config, bool is_attention, const LayerSpec& attention,
              const Mamba2& mixer) {
  if (is_attention) {
    AddAttention(config, attention);
  } else {
    AddMamba2(config, mixer);
  }
}

// Nemotron-H states its layers by letters or by words.
constexpr std::string_view kPattern = "hybrid_override_pattern", kWords = "layers_block_type";

std::vector<std::string> NemotronTypes(ConfigReader& reader) {
  std::vector<std::string> types = reader.Strings(kWords);
  if (!types.empty()) return types;
  for (char letter : reader.String(kPattern, "")) {
    constexpr std::pair<char, std::string_view> kLetters[] = {
        {'M', "mamba"}, {'*', "attention"}, {'-', "mlp"}, {'E', "moe"}};
    auto word = std::find_if(std::begin(kLetters), std::end(kLetters),
                             [letter](const auto& known) { return known.first == letter; });
    types.push_back(word != std::end(kLetters) ? std::string(word->second)
                                               : std::string(1, letter));
  }
  return types;
}

Mamba2 ReadNemotronMixer(ConfigReader& reader, const ModelConfig& config) {
  Mamba2 mixer;
  mixer.heads = reader.Integer("mamba_num_heads", 1, kMaxRank);
  mixer.head_dim = reader.Integer("mamba_head_dim", 1, kMaxRank);
  mixer.groups = reader.Integer(FirstOf(reader, {"n_groups", "mamba_n_groups"}), 1, kMaxRank);
  mixer.state = reader.Integer("ssm_state_size", 1, kMaxRank);
  mixer.kernel = reader.Integer(FirstOf(reader, {"conv_kernel", "mamba_d_conv"}), 2, kMaxKernel);
  mixer.state_dtype = StateDType(reader, "mamba_ssm_cache_dtype", config);
  return mixer;
}

Experts ReadNemotronExperts(ConfigReader& reader) {
  return {.count = ReadExpertCount(reader),
          .width = reader.Integer("moe_intermediate_size", 1, kMaxExtent),
          .shared_width = reader.Integer("n_shared_experts", 0, kMaxExperts, 1) *
                          reader.Integer("moe_shared_expert_intermediate_size", 0, kMaxExtent, 0),
          .matrices = 2,
          .input = reader.Integer("moe_latent_size", 1, kMaxExtent, 0)};
}

}  // namespace

void ReadJamba(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"num_experts", 16}});
  int layers = ReadPlanned(reader, config);
  LayerSpec attention = ReadAttention(reader, config);
  Mamba1 mixer{
      .inner = ExpandedWidth(reader, config),
      .state = reader.Integer("mamba_d_state", 1, kMaxRank, 16),
      .kernel = reader.Integer("mamba_d_conv", 2, kMaxKernel, 4),
      .step_rank = reader.IntegerOrAuto("mamba_dt_rank", 1, kMaxRank, (config.hidden + 15) / 16),
      .state_dtype = StateDType(reader, "mamba_ssm_cache_dtype", config)};
  int64_t period = reader.Integer("attn_layer_period", 1, kMaxLayers, 8);
  int64_t offset =
      reader.Integer("attn_layer_offset", 0, period - 1, std::min<int64_t>(4, period - 1));
  for (int i = 0; i < layers; ++i) {
    if (i % period == offset) {
      AddAttention(config, attention);
    } else {
      config.layers.push_back(Mamba1Layer(config, mixer));
      CountMamba1(config, mixer);
    }
  }
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  Experts experts{.count = ReadExpertCount(reader), .width = config.intermediate};
  int64_t step = reader.Integer("expert_layer_period", 1, kMaxLayers, 2);
  int64_t first =
      reader.Integer("expert_layer_offset", 0, step - 1, std::min<int64_t>(1, step - 1));
  CountMlps(config, layers, config.intermediate, experts,
            [&](int i) { return experts.count > 1 && i % step == first; });
}

void ReadBamba(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadPlanned(reader, config);
  LayerSpec attention = ReadAttention(reader, config);
  Mamba2 mixer = ReadMamba2(reader, config, ExpandedWidth(reader, config));
  std::vector<int64_t> full = reader.Integers("attn_layer_indices", 0, layers - 1);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  for (int i = 0; i < layers; ++i) {
    AddMixer(config, std::find(full.begin(), full.end(), i) != full.end(), attention, mixer);
    CountMlp(config, config.intermediate);
  }
}

// Granite 4: an MLP that every token passes in each layer, and in the larger models experts too.
void ReadGraniteHybrid(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"num_local_experts", 8}});
  int layers = ReadPlanned(reader, config);
  LayerSpec attention = ReadAttention(reader, config);
  std::vector<std::string> types = LayerTypes(
      reader, "layer_types", static_cast<size_t>(layers),
      {"attention", "mamba", "full_attention", "linear_attention"}, [](int) { return "mamba"; });
  bool recurrent = !std::all_of(types.begin(), types.end(), IsAttention);
  Mamba2 mixer;
  if (recurrent) mixer = ReadMamba2(reader, config, ExpandedWidth(reader, config));
  for (const std::string& type : types) AddMixer(config, IsAttention(type), attention, mixer);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  int64_t shared = reader.Integer("shared_intermediate_size", 1, kMaxExtent);
  Experts experts{
      .count = ReadExpertCount(reader), .width = config.intermediate, .shared_width = shared};
  CountMlps(config, layers, shared, experts, [](int) { return true; });
}

// A layer is attention, a mixer, an MLP or experts, never two of them.
void ReadNemotronH(ConfigReader& reader, ModelConfig& config) {
  std::vector<std::string> types = NemotronTypes(reader);
  reader.SetDefaults({{"num_hidden_layers", types.size()},
                      {"head_dim", 128},
                      {"mamba_ssm_cache_dtype", "float32"}});
  auto layers = static_cast<size_t>(ReadPlanned(reader, config));
  LayerSpec attention = ReadAttention(reader, config);
  Mamba2 mixer = ReadNemotronMixer(reader, config);
  types =
      CheckLayerTypes(reader, FirstOf(reader, {kWords, kPattern}), std::move(types), layers,
                      {"mamba", "attention", "mlp", "moe", "linear_attention", "full_attention"});
  bool sparse = std::find(types.begin(), types.end(), "moe") != types.end();
  Experts experts = sparse ? ReadNemotronExperts(reader) : Experts{};
  config.intermediate = reader.Integer("intermediate_size", 0, kMaxExtent, 0);
  for (const std::string& type : types) {
    if (type == "moe") {
      CountExperts(config, experts);
    } else if (type == "mlp") {
      CountMlp(config, config.intermediate, /*matrices=*/2);
    } else {
      AddMixer(config, IsAttention(type), attention, mixer);
    }
  }
}

void ReadFalconH1(ConfigReader& reader, ModelConfig& config) {
  int layers = ReadPlanned(reader, config);
  LayerSpec attention = ReadAttention(reader, config);
  int64_t inner = reader.Integer("mamba_d_ssm", 1, kMaxExtent, ExpandedWidth(reader, config));
  Mamba2 mixer = ReadMamba2(reader, config, inner);
  config.intermediate = reader.Integer("intermediate_size", 1, kMaxExtent);
  for (int i = 0; i < layers; ++i) {  // side by side
    AddAttention(config, attention);
    AddMamba2(config, mixer);
    CountMlp(config, config.intermediate);
  }
}

// Mamba-2 alone: recurrent layers and nothing else, not even an MLP.
void ReadMamba2Model(ConfigReader& reader, ModelConfig& config) {
  reader.SetDefaults({{"num_heads", 128},
                      {"head_dim", 64},
                      {"state_size", 128},
                      {"n_groups", 8},
                      {"conv_kernel", 4},
                      {"max_position_embeddings", 1 << 20}});  // without positions nothing ends it
  int layers = ReadPlanned(reader, config);
  Mamba2 mixer{.heads = reader.Integer("num_heads", 1, kMaxRank),
               .head_dim = reader.Integer("head_dim", 1, kMaxRank),
               .groups = reader.Integer("n_groups", 1, kMaxRank),
               .state = reader.Integer("state_size", 1, kMaxRank),
               .kernel = reader.Integer("conv_kernel", 2, kMaxKernel),
               .state_dtype = StateDType(reader, "mamba_ssm_cache_dtype", config)};
  for (int i = 0; i < layers; ++i) AddMamba2(config, mixer);
}

}  // namespace ashlar
