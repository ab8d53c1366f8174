#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "model/architecture.h"
#include "model/config_reader.h"
#include "model/quantization.h"

namespace ashlar {
namespace {

// So that no sum of sizes overflows: a thousand times the largest model known.
constexpr double kMaxWeights = 0x1p50;

Problem UnknownArchitecture(std::string place, const std::string& found,
                            const std::vector<std::string>& known) {
  std::string nearest = Nearest(found, known);
  return {std::move(place), fmt::format("architecture \"{}\" is not supported", found),
          OneOf(known),
          nearest.empty() ? "choose one of these" : fmt::format("did the file mean {}", nearest)};
}

Result<ModelConfig> Finish(ConfigReader& reader, ModelConfig config) {
  if (config.weights.total() > kMaxWeights) {
    reader.problems().push_back(
        {reader.place(), fmt::format("{:.2g} weights", config.weights.total()),
         fmt::format("at most {:.2g}", kMaxWeights), "use the model's original files"});
  }
  if (!reader.problems().empty()) return reader.problems();
  return config;
}

// End ids of config.json and generation_config.json together: chat models add the end of a turn in
// the second.
void ReadEndIds(const Json& config, std::vector<int32_t>& eos) {
  auto member = config.find("eos_token_id");
  if (member == config.end()) return;
  Json ids = member->is_array() ? *member : Json::array({*member});
  for (const Json& id : ids) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= 1 << 24) continue;
    if (std::find(eos.begin(), eos.end(), id.get<int32_t>()) == eos.end()) {
      eos.push_back(id.get<int32_t>());
    }
  }
}

Result<ModelConfig> ReadGguf(const Checkpoint& checkpoint) {
  std::string name;
  if (auto entry = checkpoint.gguf.find("general.architecture"); entry != checkpoint.gguf.end()) {
    if (const auto* text = std::get_if<std::string>(&entry->second)) name = *text;
  }
  std::vector<std::string> known;
  for (const Architecture& row : Architectures()) {
    if (row.gguf_name.empty()) continue;
    known.emplace_back(row.gguf_name);
    if (row.gguf_name != name) continue;
    ModelConfig config;
    config.architecture = row.name;
    config.family = name;
    config.has_forward = row.has_forward;
    ConfigReader reader(checkpoint, name);
    row.from_gguf(reader, config);
    return Finish(reader, std::move(config));
  }
  return UnknownArchitecture(checkpoint.path + " general.architecture", name, known);
}

}  // namespace

std::vector<std::string> SupportedArchitectures() {
  std::vector<std::string> names;
  for (const Architecture& row : Architectures()) names.emplace_back(row.name);
  return names;
}

int64_t ModelConfig::parameters() const { return static_cast<int64_t>(weights.total()); }

int64_t ModelConfig::weight_bytes() const {
  const DTypeInfo& info = Info(weight_dtype);
  double plain = 8.0 * info.bytes / info.elements;
  auto bits = [plain](double stated) { return stated > 0 ? stated : plain; };
  return static_cast<int64_t>((weights.kept * plain +
                               weights.linear * bits(quantization.linear_bits) +
                               weights.experts * bits(quantization.expert_bits)) /
                              8);
}

Result<ModelConfig> ReadModelConfig(const Json& json, const std::string& place) {
  if (!json.is_object()) {
    return Problem{place, "is no object", "the keys of a config.json",
                   "copy the model's config.json"};
  }
  ConfigReader outer(json, place);
  Quantization quantization = ReadQuantization(outer);
  // A multimodal wrapper keeps its language model's geometry in text_config.
  auto text = json.find("text_config");
  bool wrapped = text != json.end() && text->is_object();
  const Json& model = wrapped ? *text : json;
  ConfigReader reader(model, wrapped ? place + " text_config" : place);
  if (wrapped) {
    outer.String("model_type", "");
    if (!outer.Has("quantization_config")) quantization = ReadQuantization(reader);
  }
  reader.problems().insert(reader.problems().begin(), outer.problems().begin(),
                           outer.problems().end());

  std::string name = reader.String("model_type", "");
  if (name.empty()) {
    reader.Refuse("model_type", "is missing", OneOf(SupportedArchitectures()),
                  "copy the model's config.json");
    return reader.problems();
  }
  for (const Architecture& row : Architectures()) {
    if (row.name != name) continue;
    ModelConfig config;
    config.architecture = name;
    config.family = name;
    config.quantization = std::move(quantization);
    config.has_forward = row.has_forward;
    row.from_config(reader, config);
    ReadEndIds(model, config.eos);
    return Finish(reader, std::move(config));
  }
  return UnknownArchitecture(reader.place() + " model_type", name, SupportedArchitectures());
}

Result<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint) {
  if (checkpoint.format == Checkpoint::Format::kGguf) return ReadGguf(checkpoint);
  Result<ModelConfig> config = ReadModelConfig(checkpoint.config, checkpoint.path + " config.json");
  if (config && checkpoint.generation_config && checkpoint.generation_config->is_object()) {
    ReadEndIds(*checkpoint.generation_config, config->eos);
  }
  return config;
}

}  // namespace ashlar
