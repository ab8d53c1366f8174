#include "checkpoint/builtin.h"

#include <fmt/format.h>

#include "base/nearest.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/formats.h"

namespace ashlar {
namespace {

class BuiltinFolder final : public ModelFolder {
 public:
  explicit BuiltinFolder(const BuiltinModel& model)
      : model_(model), path_(fmt::format("builtin:{}", model.name)) {
    for (const BuiltinFile& file : model.files) names_.emplace_back(file.name);
  }
  const std::string& path() const override { return path_; }
  const std::vector<std::string>& names() const override { return names_; }

  Result<MappedFile> Map(const std::string& name) const override {
    for (const BuiltinFile& file : model_.files) {
      if (name == file.name) {
        return MappedFile::Builtin(path_ + "/" + name,
                                   {file.begin, static_cast<size_t>(file.end - file.begin)});
      }
    }
    return Problem{path_ + "/" + name, "is not in this binary", OneOf(names_), "name one of these"};
  }

 private:
  const BuiltinModel& model_;
  std::string path_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> BuiltinCheckpointNames() {
  std::vector<std::string> names;
  for (const BuiltinModel& model : BuiltinModels()) names.emplace_back(model.name);
  return names;
}

Result<Checkpoint> OpenBuiltinCheckpoint(const std::string& name) {
  for (const BuiltinModel& model : BuiltinModels()) {
    if (name == model.name) return ReadModelFolder(BuiltinFolder(model));
  }
  std::vector<std::string> names = BuiltinCheckpointNames();
  std::string nearest = Nearest(name, names);
  return Problem{"builtin:" + name, "is no model of this binary",
                 names.empty() ? "none, this binary holds no model" : OneOf(names),
                 nearest.empty() ? "name a file with path instead" : "did you mean " + nearest};
}

}  // namespace ashlar
