#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "checkpoint/formats.h"
#include "checkpoint/layout.h"

namespace ashlar {
namespace {

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kSingle = "model.safetensors";
constexpr int64_t kMaxConfig = 4 << 20, kMaxTemplate = 1 << 20;
constexpr int64_t kMaxIndex = 100'000'000, kMaxTokenizer = 64'000'000;
constexpr size_t kMaxFiles = 100'000;

class DiskFolder final : public ModelFolder {
 public:
  DiskFolder(std::string path, std::vector<std::string> names)
      : path_(std::move(path)), names_(std::move(names)) {}
  const std::string& path() const override { return path_; }
  const std::vector<std::string>& names() const override { return names_; }

  Result<MappedFile> Map(const std::string& name) const override {
    std::string file = (std::filesystem::path(path_) / name).string();
    if (std::optional<Problem> problem = LeavesFolder(file)) return *problem;
    return MappedFile::Open(file);
  }

 private:
  // A link may lead within the folder, or from a snapshot of a Hugging Face cache to its blobs.
  std::optional<Problem> LeavesFolder(const std::string& file) const {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::path folder = fs::canonical(path_, error);
    if (error) return std::nullopt;  // opening it states the reason
    fs::path target = fs::canonical(file, error);
    if (error) return std::nullopt;
    if (Contains(folder, target)) return std::nullopt;
    bool snapshot = folder.parent_path().filename() == "snapshots";
    if (snapshot && Contains(folder.parent_path().parent_path() / "blobs", target))
      return std::nullopt;
    return Problem{file, fmt::format("leads to {}", target.string()),
                   "a file inside the model's folder", "copy the file instead of linking it"};
  }

  static bool Contains(const std::filesystem::path& folder, const std::filesystem::path& file) {
    return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first ==
           folder.end();
  }

  std::string path_;
  std::vector<std::string> names_;
};

std::string_view Text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Result<Json> ParseObject(const MappedFile& file) {
  if (static_cast<int64_t>(file.bytes().size()) > kMaxConfig) {
    return Problem{file.path(), fmt::format("{} bytes", file.bytes().size()),
                   fmt::format("at most {} bytes", kMaxConfig), "check that it is the right file"};
  }
  if (file.bytes().empty())
    return Problem{file.path(), "the file has 0 bytes", "a JSON object", std::string(kFetchAgain)};
  Result<Json> json = ParseJson(Text(file), file.path());
  if (json.ok() && !json->is_object()) {
    return Problem{file.path(), fmt::format("holds a JSON {}", json->type_name()), "a JSON object",
                   std::string(kFetchAgain)};
  }
  return json;
}

// Reads one model's files; each step adds what is wrong to `problems_` and goes on.
class FolderReader {
 public:
  explicit FolderReader(const ModelFolder& folder) : folder_(folder) {}

  Result<Checkpoint> Read() {
    out_.path = folder_.path();
    ReadConfig();
    ReadWeights();
    ReadTokenizer();
    if (!problems_.empty()) return std::move(problems_);
    return std::move(out_);
  }

 private:
  std::string PathOf(std::string_view name) const {
    return (std::filesystem::path(folder_.path()) / name).string();
  }

  template <class T>
  std::optional<T> Take(Result<T> result) {
    if (result.ok()) return std::move(*result);
    problems_.insert(problems_.end(), result.problems().begin(), result.problems().end());
    return std::nullopt;
  }

  std::optional<Json> ReadObject(const std::string& name) {
    if (!folder_.Has(name)) return std::nullopt;
    std::optional<MappedFile> file = Take(folder_.Map(name));
    return file ? Take(ParseObject(*file)) : std::nullopt;
  }

  std::string ReadText(const std::string& name, int64_t limit) {
    if (!folder_.Has(name)) return "";
    std::optional<MappedFile> file = Take(folder_.Map(name));
    if (!file) return "";
    if (static_cast<int64_t>(file->bytes().size()) > limit) {
      problems_.push_back({file->path(), fmt::format("{} bytes", file->bytes().size()),
                           fmt::format("at most {} bytes", limit),
                           "check that it is the right file"});
      return "";
    }
    return std::string(Text(*file));
  }

  void ReadConfig() {
    if (!folder_.Has("config.json")) {
      std::string next = "name the folder that holds config.json";
      for (const std::string& name : folder_.names()) {
        if (name.ends_with(".gguf")) next = "name the file itself: " + PathOf(name);
      }
      problems_.push_back({folder_.path(), "has no config.json",
                           "a folder with config.json and *.safetensors", next});
      return;
    }
    if (std::optional<Json> config = ReadObject("config.json")) out_.config = std::move(*config);
    out_.generation_config = ReadObject("generation_config.json");
  }

  void ReadWeights() {
    std::vector<std::string> shards;
    for (const std::string& name : folder_.names()) {
      if (name.ends_with(".safetensors")) shards.push_back(name);
    }
    if (folder_.Has(kSingle)) {
      ReadShards({std::string(kSingle)});
    } else if (folder_.Has(kIndex)) {
      ReadIndexed();
    } else if (shards.size() == 1) {
      ReadShards(shards);
    } else if (shards.size() > 1) {
      problems_.push_back(
          {folder_.path(),
           fmt::format("has {} *.safetensors files and no {}", shards.size(), kIndex),
           "one file, or an index of all", std::string(kFetchAgain)});
    }
  }

  void ReadIndexed() {
    std::optional<MappedFile> file = Take(folder_.Map(std::string(kIndex)));
    if (!file) return;
    if (static_cast<int64_t>(file->bytes().size()) > kMaxIndex) {
      problems_.push_back({file->path(), fmt::format("{} bytes", file->bytes().size()),
                           fmt::format("at most {} bytes", kMaxIndex), std::string(kDamaged)});
      return;
    }
    auto index = Take(ReadSafetensorsIndex(Text(*file), file->path()));
    if (!index) return;
    std::map<std::string, std::string> needed;  // shard -> one tensor that it should hold
    for (const auto& [tensor, shard] : *index) needed.emplace(shard, tensor);
    std::vector<std::string> shards;
    for (const auto& [shard, tensor] : needed) {
      if (CheckShardName(file->path(), shard, tensor)) shards.push_back(shard);
    }
    if (shards.size() == needed.size() && ReadShards(shards)) CheckIndex(file->path(), *index);
  }

  bool CheckShardName(const std::string& index, const std::string& shard,
                      const std::string& tensor) {
    std::string place = fmt::format("{} tensor {}", index, Shown(tensor));
    if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos) {
      problems_.push_back({place, fmt::format("file \"{}\"", Shown(shard)),
                           "the plain name of a file in the same folder", std::string(kDamaged)});
      return false;
    }
    if (folder_.Has(shard)) return true;
    problems_.push_back({place, fmt::format("file {} is missing", Shown(shard)),
                         "every file that the index names",
                         "the download was probably interrupted: fetch that file"});
    return false;
  }

  bool ReadShards(const std::vector<std::string>& shards) {
    out_.format = Checkpoint::Format::kSafetensors;
    size_t before = problems_.size();
    for (const std::string& shard : shards) {
      std::optional<MappedFile> file = Take(folder_.Map(shard));
      if (!file) continue;
      auto tensors = Take(ReadSafetensors(*file, static_cast<int>(out_.files.size())));
      if (!tensors) continue;
      std::move(tensors->begin(), tensors->end(), std::back_inserter(out_.tensors));
      out_.files.push_back(std::move(*file));
    }
    if (problems_.size() > before) return false;
    if (out_.tensors.size() > kMaxTensors) {
      problems_.push_back({folder_.path(), fmt::format("{} tensors", out_.tensors.size()),
                           fmt::format("at most {}", kMaxTensors), std::string(kDamaged)});
      return false;
    }
    if (auto problem = SortByName(folder_.path(), out_.tensors)) {
      problems_.push_back(*problem);
      return false;
    }
    return true;
  }

  void CheckIndex(const std::string& path, const std::map<std::string, std::string>& index) {
    std::map<std::string, int> number;  // file path -> index in out_.files
    for (size_t i = 0; i < out_.files.size(); ++i)
      number[out_.files[i].path()] = static_cast<int>(i);
    for (const auto& [name, shard] : index) {
      const TensorInfo* tensor = out_.Find(name);
      if (tensor != nullptr && tensor->file == number[PathOf(shard)]) continue;
      problems_.push_back(
          {fmt::format("{} tensor {}", path, Shown(name)),
           tensor == nullptr
               ? fmt::format("is in no file, though the index says {}", shard)
               : fmt::format("is in {}, not in {}", out_.files[tensor->file].path(), shard),
           "the file that the index names", "fetch the index and its files again"});
      return;  // one says it: an index of another model misses them all
    }
  }

  void ReadTokenizer() {
    out_.tokenizer_json = ReadText("tokenizer.json", kMaxTokenizer);
    out_.tokenizer_config = ReadObject("tokenizer_config.json");
    out_.chat_template = ReadText("chat_template.jinja", kMaxTemplate);
    if (out_.tokenizer_config && out_.chat_template.empty())
      TakeChatTemplate(*out_.tokenizer_config);
  }

  // A string, or a list of named templates of which "default" is the chat's.
  void TakeChatTemplate(const Json& config) {
    auto found = config.find("chat_template");
    if (found == config.end() || found->is_null()) return;
    if (found->is_string()) {
      out_.chat_template = found->get<std::string>();
      return;
    }
    if (found->is_array()) {
      for (const Json& entry : *found) {
        if (!entry.is_object() || !entry.contains("name") || entry["name"] != "default") continue;
        auto text = entry.find("template");
        if (text == entry.end() || !text->is_string()) break;
        out_.chat_template = text->get<std::string>();
        return;
      }
    }
    problems_.push_back({PathOf("tokenizer_config.json") + " chat_template",
                         fmt::format("is a JSON {} without a default template", found->type_name()),
                         "a string, or a list with an entry {name: default, template: text}",
                         "mend the file or add chat_template.jinja"});
  }

  const ModelFolder& folder_;
  Checkpoint out_;
  Problems problems_;
};

}  // namespace

bool ModelFolder::Has(std::string_view name) const {
  return std::binary_search(names().begin(), names().end(), name);
}

Result<std::unique_ptr<ModelFolder>> OpenDiskFolder(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    if (names.size() == kMaxFiles) {
      return Problem{path, fmt::format("has over {} files", kMaxFiles), "a model's own folder",
                     "name the folder that holds config.json"};
    }
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return Problem{path, fmt::format("cannot be listed: {}", error.message()), "a readable folder",
                   "check the mount and the access rights"};
  }
  std::sort(names.begin(), names.end());
  return std::unique_ptr<ModelFolder>(new DiskFolder(path, std::move(names)));
}

Result<Checkpoint> ReadModelFolder(const ModelFolder& folder) {
  return FolderReader(folder).Read();
}

Result<Checkpoint> ReadConfigAlone(const MappedFile& file) {
  Result<Json> config = ParseObject(file);
  if (!config) return config.problems();
  Checkpoint out;
  out.path = file.path();
  out.config = std::move(*config);
  return out;
}

}  // namespace ashlar
