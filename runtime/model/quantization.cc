#include "model/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/nearest.h"

namespace ashlar {
namespace {

constexpr double kScaleBits = 16;  // one scale a group of weights

// A group of weights shares a scale; -1 and 0 mean a scale a column, which weighs nothing.
double WithScales(double bits, int64_t group) {
  return group > 0 ? bits + kScaleBits / static_cast<double>(group) : bits;
}

int64_t Group(ConfigReader& settings) { return settings.Integer("group_size", -1, 1 << 16, 0); }

// Attention left out of quantisation is named in a list of modules; experts never are.
bool LeavesAttention(ConfigReader& settings, std::string_view key) {
  std::vector<std::string> modules = settings.Strings(key);
  return std::any_of(modules.begin(), modules.end(), [](const std::string& module) {
    return module.find("attn") != std::string::npos;
  });
}

Quantization Both(double bits) { return {"", bits, bits}; }

Quantization Float8(ConfigReader&) { return Both(8); }

Quantization Mxfp4(ConfigReader& settings) {
  double bits = WithScales(4, 64);  // 8 bits of scale to 32 weights
  return {"", LeavesAttention(settings, "modules_to_not_convert") ? 0 : bits, bits};
}

Quantization PackedIntegers(ConfigReader& settings) {
  int64_t bits = settings.Integer("bits", 2, 8, 4);
  return Both(WithScales(static_cast<double>(bits), Group(settings)));
}

Quantization BitsAndBytes(ConfigReader& settings) {
  bool four = settings.Boolean("load_in_4bit", false);
  return Both(four ? WithScales(4, 64) : 8);
}

// The first of config_groups decides; files with several differ in activations only.
Quantization CompressedTensors(ConfigReader& settings) {
  Json groups = settings.Object("config_groups");
  if (!groups.is_object() || groups.empty() || !groups.front().is_object()) {
    settings.Refuse("config_groups", "holds no group", "a group with the bits of its weights",
                    "use the model's original files");
    return {};
  }
  ConfigReader group = ConfigReader::Nested(settings, groups.front(), "config_groups");
  Json weights = group.Object("weights");
  ConfigReader stored = ConfigReader::Nested(group, weights, "weights");
  int64_t bits = stored.Integer("num_bits", 2, 8);
  double stored_bits = WithScales(static_cast<double>(bits), Group(stored));
  return {"", LeavesAttention(settings, "ignore") ? 0 : stored_bits, stored_bits};
}

Quantization ModelOpt(ConfigReader& settings) {
  std::string algorithm = settings.String("quant_algo", "FP8");
  if (algorithm == "FP8") return Both(8);
  if (algorithm == "NVFP4") return Both(WithScales(4, 32));  // 8 bits of scale to 16 weights
  settings.Refuse("quant_algo", fmt::format("\"{}\" is not supported", algorithm), "FP8 or NVFP4",
                  "choose a checkpoint with one of these");
  return {};
}

struct Method {
  std::string_view name;  // quant_method
  Quantization (*read)(ConfigReader& settings);
};

constexpr std::array<Method, 9> kMethods = {{
    {"awq", PackedIntegers},
    {"bitsandbytes", BitsAndBytes},
    {"compressed-tensors", CompressedTensors},
    {"fbgemm_fp8", Float8},
    {"fp8", Float8},
    {"gptq", PackedIntegers},
    {"modelopt", ModelOpt},
    {"modelopt_fp4", ModelOpt},
    {"mxfp4", Mxfp4},
}};

}  // namespace

Quantization ReadQuantization(ConfigReader& reader) {
  Json object = reader.Object("quantization_config");
  if (!object.is_object()) return {};
  ConfigReader settings = ConfigReader::Nested(reader, object, "quantization_config");
  std::string name = settings.String("quant_method", "");
  std::vector<std::string> known;
  for (const Method& method : kMethods) {
    known.emplace_back(method.name);
    if (method.name != name) continue;
    Quantization read = method.read(settings);
    read.method = name;
    return read;
  }
  std::string nearest = Nearest(name, known);
  settings.Refuse("quant_method", fmt::format("\"{}\" is not supported", name), OneOf(known),
                  nearest.empty() ? "choose a checkpoint with one of these"
                                  : fmt::format("did the file mean {}", nearest));
  return {};
}

}  // namespace ashlar
