// A model folder from anybody: the input is its text files, one after another, with a byte 0xff
// between them; two small shards stand beside them.
#include <algorithm>
#include <array>
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

}  // namespace
}  // namespace ashlar

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
