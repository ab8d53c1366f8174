// A model folder from anybody: the input is its text files, one after another, with a byte 0xff
// between them; two small shards stand beside them. Half of the mutations keep config.json a JSON
// document and change one value of it, so that every architecture's reader is reached.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string_view>

#include "checkpoint/formats.h"
#include "fuzz/checkpoint_invariants.h"
#include "model/config.h"
#include "support/safetensors_writer.h"

namespace ashlar {
namespace {

constexpr std::array<std::string_view, 6> kTextFiles = {
    "config.json",         "model.safetensors.index.json", "tokenizer_config.json",
    "chat_template.jinja", "generation_config.json",       "tokenizer.json"};

class FuzzFolder final : public ModelFolder {
 public:
  explicit FuzzFolder(std::string_view input) {
    files_["a.safetensors"] =
        testing_support::SafetensorsWriter().Tensor("a", "F16", {1}, "12").Bytes();
    files_["b.safetensors"] =
        testing_support::SafetensorsWriter().Tensor("b", "F16", {1}, "12").Bytes();
    for (std::string_view name : kTextFiles) {
      size_t end = std::min(input.find('\xff'), input.size());
      if (end > 0) files_[std::string(name)] = std::string(input.substr(0, end));
      input.remove_prefix(std::min(end + 1, input.size()));
    }
    for (const auto& [name, bytes] : files_) names_.push_back(name);
  }
  const std::string& path() const override { return path_; }
  const std::vector<std::string>& names() const override { return names_; }
  Result<MappedFile> Map(const std::string& name) const override {
    return MappedFile::Builtin(path_ + "/" + name, std::as_bytes(std::span(files_.at(name))));
  }

 private:
  std::string path_ = "fuzz";
  std::map<std::string, std::string> files_;
  std::vector<std::string> names_;
};

void Collect(Json& value, std::vector<Json*>& all) {
  if (!value.is_structured()) return;
  for (Json& member : value) {
    all.push_back(&member);
    Collect(member, all);
  }
}

// One value becomes an extreme one, a name of an architecture, or a copy of another value.
void Twist(Json& config, std::minstd_rand& random) {
  static const std::vector<Json> kExtremes = {nullptr,
                                              0,
                                              -1,
                                              1,
                                              2,
                                              3,
                                              7,
                                              64,
                                              4096,
                                              1 << 16,
                                              1 << 22,
                                              1 << 30,
                                              UINT64_MAX,
                                              INT64_MIN,
                                              1e300,
                                              -0.5,
                                              true,
                                              "",
                                              "auto",
                                              "float32",
                                              "yarn",
                                              "moe",
                                              "M*E-",
                                              Json::array(),
                                              {0, 1},
                                              {-1, 1e18},
                                              "full_attention",
                                              {"sliding_attention"},
                                              Json::object()};
  static const std::vector<std::string> kNames = SupportedArchitectures();
  std::vector<Json*> values;
  Collect(config, values);
  if (values.empty()) return;
  Json& target = *values[random() % values.size()];
  switch (random() % 4) {
    case 0:
      config["model_type"] = kNames[random() % kNames.size()];
      return;
    case 1:
      target = Json(*values[random() % values.size()]);
      return;
    default:
      target = kExtremes[random() % kExtremes.size()];
  }
}

}  // namespace
}  // namespace ashlar

// Of libFuzzer; absent where the corpus is run as a test.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most,
                                          unsigned int seed) {
  using namespace ashlar;
  std::minstd_rand random(seed);
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t end = std::min(input.find('\xff'), size);
  Result<Json> config = ParseJson(input.substr(0, end), "fuzz");
  if (random() % 2 == 0 || !config || !config->is_object()) {
    return LLVMFuzzerMutate(data, size, most);
  }
  Twist(*config, random);
  std::string text = DumpJson(*config) + std::string(input.substr(end));
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  FuzzFolder folder({reinterpret_cast<const char*>(data), size});
  Result<Checkpoint> read = ReadModelFolder(folder);
  if (!read) {
    CheckProblems(read.problems());
    return 0;
  }
  CheckTensors(read->tensors, read->files);
  if (Result<ModelConfig> config = ReadModelConfig(*read); !config)
    CheckProblems(config.problems());
  return 0;
}
