// What the architecture readers share: the fields that every model has, in Hugging Face's and in
// GGUF's words.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/config_reader.h"

namespace ashlar {

inline constexpr int64_t kMaxExtent = 1 << 22;  // so that no product of two extents overflows
inline constexpr int64_t kMaxLayers = 4096;
inline constexpr int64_t kMaxContext = int64_t{1} << 40;
inline constexpr int64_t kMaxExperts = 1 << 16;
inline constexpr int64_t kMaxRank = 1 << 16;    // of heads, head sizes, states and their kin
inline constexpr int64_t kMaxKernel = 1 << 10;  // taps of a causal convolution
inline constexpr int64_t kMaxWindow = 1 << 30;

// The geometry of a layer before kinds and windows are set; all layers start alike.
struct DecoderShape {
  int layers = 0;
  LayerSpec layer;  // full attention, scale 1/sqrt(head_dim)
  int rotary_dim = 0;
};

// For an architecture with a forward pass: fills hidden, vocab, norms, context, end ids, dtype;
// refuses an activation other than the expected one.
DecoderShape ReadDecoder(ConfigReader& reader, ModelConfig& config, std::string_view activation);
DecoderShape ReadGgufDecoder(ConfigReader& reader, ModelConfig& config);

// For an architecture that is planned only: hidden, vocab, context, dtype, whether the head is
// tied; refuses a rope type that it does not know. Counts embedding and head. Returns the number of
// layers.
int ReadPlanned(ConfigReader& reader, ModelConfig& config);
// Heads and head size of full attention.
LayerSpec ReadAttention(ConfigReader& reader, const ModelConfig& config);
// The same for query heads and a head size under keys of their own.
LayerSpec MakeAttention(ConfigReader& reader, std::string_view heads_key, int64_t heads,
                        std::string_view kv_key, int64_t kv_heads, int64_t head_dim);

// The list under `key` with one type a layer, each among `allowed`. Without the list each layer has
// the type that `otherwise` gives it. Empty after a mistake.
std::vector<std::string> LayerTypes(ConfigReader& reader, std::string_view key, size_t layers,
                                    std::initializer_list<std::string_view> allowed,
                                    const std::function<std::string_view(int)>& otherwise);

// `types` if there is one a layer and each is among `allowed`; else reported and empty.
std::vector<std::string> CheckLayerTypes(ConfigReader& reader, std::string_view key,
                                         std::vector<std::string> types, size_t layers,
                                         std::initializer_list<std::string_view> allowed);

// Makes layers sliding by layer_types, or without it those for which `otherwise` holds.
void SetSlidingLayers(ConfigReader& reader, ModelConfig& config, int window,
                      const std::function<bool(int)>& otherwise);

// The one of `keys` that the file has, else the first.
std::string_view FirstOf(ConfigReader& reader, std::initializer_list<std::string_view> keys);

// The number of experts of each layer, under any of the names it has; 0 where the file may say so.
int64_t ReadExpertCount(ConfigReader& reader);

}  // namespace ashlar
