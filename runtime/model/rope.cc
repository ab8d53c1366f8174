#include "model/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "base/nearest.h"

namespace ashlar {
namespace {

constexpr std::string_view kScalings = "default, linear, llama3 or yarn";

// Wavelengths above original/low are divided by `factor`, those below original/high are kept,
// between is blended.
std::vector<float> Llama3Frequencies(ConfigReader& settings, double theta, int dim) {
  double factor = settings.Number("factor", 1, 1e6, 8);
  double low = settings.Number("low_freq_factor", 1e-3, 1e6, 1);
  double high = settings.Number("high_freq_factor", 1e-3, 1e6, 4);
  double original = settings.Number("original_max_position_embeddings", 1, 1e9, 8192);
  if (high <= low) {
    settings.Refuse("high_freq_factor", fmt::format("{}", high),
                    fmt::format("more than low_freq_factor {}", low),
                    "use the model's original files");
    return PlainFrequencies(theta, dim);
  }
  std::vector<float> inv_freq;
  for (int i = 0; i < dim / 2; ++i) {
    double frequency = std::pow(theta, -2.0 * i / dim);
    double wavelength = 2 * std::numbers::pi / frequency;
    double smooth = (original / wavelength - low) / (high - low);
    double blended = frequency * (smooth + (1 - smooth) / factor);
    if (wavelength > original / low) blended = frequency / factor;
    if (wavelength < original / high) blended = frequency;
    inv_freq.push_back(static_cast<float>(blended));
  }
  return inv_freq;
}

struct Yarn {
  double factor, beta_fast, beta_slow, original, attention_factor;
  bool truncate;
};

// Extrapolates fast dimensions, interpolates slow ones, ramps between the two found from rotations
// at `original`.
Rope YarnRope(const Yarn& yarn, double theta, int dim) {
  auto correction = [&](double rotations) {
    return dim * std::log(yarn.original / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = correction(yarn.beta_fast), high = correction(yarn.beta_slow);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1.0);
  if (low == high) high += 0.001;
  Rope rope;
  for (int i = 0; i < dim / 2; ++i) {
    double frequency = std::pow(theta, -2.0 * i / dim);
    double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    rope.inv_freq.push_back(
        static_cast<float>(frequency / yarn.factor * ramp + frequency * (1 - ramp)));
  }
  rope.scale = static_cast<float>(yarn.attention_factor);
  return rope;
}

double YarnAttention(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

Yarn ReadYarn(ConfigReader& settings, int64_t context_length) {
  Yarn yarn{};
  yarn.original = settings.Number("original_max_position_embeddings", 1, 1e9,
                                  static_cast<double>(std::max<int64_t>(context_length, 1)));
  yarn.factor = settings.Number("factor", 1, 1e6, 1);
  yarn.beta_fast = settings.Number("beta_fast", 1e-3, 1e6, 32);
  yarn.beta_slow = settings.Number("beta_slow", 1e-3, 1e6, 1);
  yarn.truncate = settings.Boolean("truncate", true);
  double mscale = settings.Number("mscale", 0, 1e3, 0);
  double mscale_all = settings.Number("mscale_all_dim", 0, 1e3, 0);
  double fallback = mscale != 0 && mscale_all != 0 ? YarnAttention(yarn.factor, mscale) /
                                                         YarnAttention(yarn.factor, mscale_all)
                                                   : YarnAttention(yarn.factor, 1);
  yarn.attention_factor = settings.Number("attention_factor", 1e-3, 1e3, fallback);
  return yarn;
}

}  // namespace

std::vector<float> PlainFrequencies(double theta, int rotary_dim, double divisor) {
  std::vector<float> inv_freq;
  for (int i = 0; i < rotary_dim / 2; ++i) {
    inv_freq.push_back(static_cast<float>(std::pow(theta, -2.0 * i / rotary_dim) / divisor));
  }
  return inv_freq;
}

Rope RopeFrom(ConfigReader& settings, int rotary_dim, double theta, int64_t context_length) {
  std::string type = settings.String("rope_type", settings.String("type", "default"));
  Rope rope;
  if (type == "default") {
    rope.inv_freq = PlainFrequencies(theta, rotary_dim);
  } else if (type == "linear") {
    rope.inv_freq = PlainFrequencies(theta, rotary_dim, settings.Number("factor", 1, 1e6, 1));
  } else if (type == "llama3") {
    rope.inv_freq = Llama3Frequencies(settings, theta, rotary_dim);
  } else if (type == "yarn") {
    rope = YarnRope(ReadYarn(settings, context_length), theta, rotary_dim);
  } else {
    settings.Refuse("rope_type", fmt::format("\"{}\" is not supported", type),
                    std::string(kScalings), "choose a model with one of these");
  }
  return rope;
}

Rope ReadRope(ConfigReader& reader, int rotary_dim, double default_theta) {
  int64_t context = reader.Integer("max_position_embeddings", 1, int64_t{1} << 40, 2048);
  double theta = reader.Number("rope_theta", 1, 1e15, default_theta);
  for (std::string_view key : {"rope_parameters", "rope_scaling"}) {
    Json settings = reader.Object(key);
    if (!settings.is_object()) continue;
    ConfigReader nested = ConfigReader::Nested(reader, settings, key);
    return RopeFrom(nested, rotary_dim, nested.Number("rope_theta", 1, 1e15, theta), context);
  }
  Rope rope;
  rope.inv_freq = PlainFrequencies(theta, rotary_dim);
  return rope;
}

void CheckRopeTypes(ConfigReader& reader) {
  static constexpr std::string_view kKnown[] = {
      "default", "dynamic", "linear", "llama3", "longrope", "mrope", "proportional", "su", "yarn"};
  auto check = [](ConfigReader& settings) {
    std::string type = settings.String("rope_type", settings.String("type", "default"));
    if (std::find(std::begin(kKnown), std::end(kKnown), type) != std::end(kKnown)) return;
    std::vector<std::string> known(std::begin(kKnown), std::end(kKnown));
    settings.Refuse("rope_type", fmt::format("\"{}\" is not supported", type), OneOf(known),
                    "choose a model with one of these");
  };
  for (std::string_view key : {"rope_parameters", "rope_scaling"}) {
    Json object = reader.Object(key);
    if (!object.is_object()) continue;
    ConfigReader settings = ConfigReader::Nested(reader, object, key);
    check(settings);
    for (const auto& [kind, value] : object.items()) {
      if (!kind.ends_with("_attention")) continue;  // keyed by layer type
      Json of_kind = settings.Object(kind);
      ConfigReader nested = ConfigReader::Nested(settings, of_kind, kind);
      check(nested);
    }
  }
}

Rope ReadGgufRope(ConfigReader& reader, int rotary_dim) {
  double theta = reader.Number("rope.freq_base", 1, 1e15, 10000);
  std::string type = reader.String("rope.scaling.type", "none");
  double factor = reader.Number("rope.scaling.factor", 0, 1e6, 1);
  if (factor == 0) factor = 1;  // written by converters for "no scaling"
  Rope rope;
  if (type == "none") {
    rope.inv_freq = PlainFrequencies(theta, rotary_dim);
  } else if (type == "linear") {
    rope.inv_freq = PlainFrequencies(theta, rotary_dim, factor);
  } else if (type == "yarn") {
    Yarn yarn{.factor = factor,
              .beta_fast = reader.Number("rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32),
              .beta_slow = reader.Number("rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1),
              .original = reader.Number("rope.scaling.original_context_length", 1, 1e9,
                                        reader.Number("context_length", 1, 1e9, 2048)),
              .attention_factor = YarnAttention(factor, 1) *
                                  reader.Number("rope.scaling.attn_factor", 1e-3, 1e3, 1),
              .truncate = true};
    rope = YarnRope(yarn, theta, rotary_dim);
  } else {
    reader.Refuse("rope.scaling.type", fmt::format("\"{}\" is not supported", type),
                  "none, linear or yarn", "choose a model with one of these");
    return rope;
  }
  const TensorInfo* factors = reader.gguf()->Find("rope_freqs.weight");
  if (factors == nullptr) return rope;
  if (factors->dtype != DType::kF32 || factors->bytes != rope.inv_freq.size() * sizeof(float)) {
    reader.problems().push_back(
        {reader.place() + " tensor rope_freqs.weight", fmt::format("{} bytes", factors->bytes),
         fmt::format("{} float32 values", rope.inv_freq.size()), "convert the model again"});
    return rope;
  }
  for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
    float divisor;
    std::memcpy(&divisor, reader.gguf()->Bytes(*factors).data() + i * sizeof(float),
                sizeof divisor);
    rope.inv_freq[i] /= divisor;
  }
  return rope;
}

}  // namespace ashlar
