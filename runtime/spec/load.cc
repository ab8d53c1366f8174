#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/mapped_file.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "spec/cross_check.h"
#include "spec/field_readers.h"
#include "spec/fields.h"
#include "spec/source_text.h"
#include "spec/spec.h"
#include "spec/structure.h"
#include "spec/yaml_tree.h"

namespace ashlar {
namespace {

constexpr std::string_view kApiVersion = "ashlar.dev/v1alpha1";
constexpr size_t kMaxProblems =
    50;  // enough to mend in one go; keeps a hostile file's report short

// Reads one document. Used once.
class Loader {
 public:
  explicit Loader(const std::string& name) : name_(name) { spec_.origins.SetDocument(name); }

  Result<Spec> Load(std::string_view text) {
    YamlTree tree = ParseYaml(text, name_);
    if (!tree.problems.empty()) return tree.problems;
    const YamlNode* model = FindModel(tree.root);
    if (model == nullptr) return problems_;
    CheckStructure(tree.root, [this](const std::string& path, const YamlNode& at, std::string found,
                                     std::string allowed, std::string next) {
      Add(path, at, std::move(found), std::move(allowed), std::move(next));
    });
    Json document = ReadKeys(*model, "", "", "");
    AddConflicts(*model);
    if (!problems_.empty()) return Capped();
    FillName();
    spec_.document = CanonicalJson(document);
    spec_.digest = Sha256Hex(spec_.document);
    return std::move(spec_);
  }

 private:
  // The ModelSpec in the document: the root, or spec.model of an InferenceModel. Null with a
  // problem when there is none.
  const YamlNode* FindModel(const YamlNode& root) {
    if (!root.is_map()) {
      Add("", root, fmt::format("{} as the whole document", Describe(root)),
          "a map with at least the key source", "write a ModelSpec");
      return nullptr;
    }
    const YamlNode* kind = root.Find("kind");
    if (kind == nullptr || !kind->is_scalar() || kind->text == "ModelSpec") return &root;
    if (kind->text == "InferenceModel") return FindInManifest(root);
    std::vector<std::string> kinds = {"ModelSpec", "InferenceModel"};
    std::string nearest = Nearest(kind->text, kinds);
    Add("kind", *kind, fmt::format("{} is not a model", Describe(*kind)), OneOf(kinds),
        nearest.empty() ? "pass the file of a ModelSpec or of an InferenceModel"
                        : fmt::format("did you mean {}?", nearest));
    return nullptr;
  }

  const YamlNode* FindInManifest(const YamlNode& root) {
    in_manifest_ = true;
    const YamlNode* version = root.Find("apiVersion");
    if (version == nullptr || !version->is_scalar() || version->text != kApiVersion) {
      Add("apiVersion", version == nullptr ? root : *version,
          version == nullptr ? "missing" : fmt::format("{} is not known", Describe(*version)),
          std::string(kApiVersion), fmt::format("write apiVersion: {}", kApiVersion));
    }
    const YamlNode* spec = root.Find("spec");
    const YamlNode* model = spec == nullptr ? nullptr : spec->Find("model");
    if (model == nullptr || !model->is_map()) {
      const YamlNode& at = model != nullptr ? *model : spec != nullptr ? *spec : root;
      Add("spec.model", at, model == nullptr ? "missing" : Describe(*model), "a ModelSpec as a map",
          "write the model's fields below spec.model");
      return nullptr;
    }
    base_ = "spec.model";
    spec_.origins.SetPrefix(base_);
    return model;
  }

  // Reads the keys of the object or map at `path`; `pattern` is its path in the table ("*" for map
  // keys), `map_key` what stands for the "*".
  Json ReadKeys(const YamlNode& node, const std::string& pattern, const std::string& path,
                std::string_view map_key) {
    Json object = Json::object();
    const Field* self = FindField(pattern);
    bool is_map = self != nullptr && self->doc.type == "map";
    for (size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const YamlNode& key = node.items[i];
      if (!key.is_scalar() || (key.text == "<<" && !key.quoted)) continue;
      const std::string child = path.empty() ? key.text : path + "." + key.text;
      if (is_map && !AddMistakes(self->check_key(key), child, key, node.items[i + 1])) continue;
      const std::string& leaf = is_map ? "*" : key.text;
      const Field* field = leaf == "*" && !is_map
                               ? nullptr
                               : FindField(pattern.empty() ? leaf : pattern + "." + leaf);
      if (field == nullptr) {
        AddUnknown(key, pattern, path);
        continue;
      }
      Append(object, key.text,
             ReadField(*field, key, node.items[i + 1], child, is_map ? key.text : map_key));
    }
    return object;
  }

  Json ReadField(const Field& field, const YamlNode& key, const YamlNode& value,
                 const std::string& path, std::string_view map_key) {
    const bool leaf = field.read != nullptr;
    const YamlNode& at = leaf && !IsAbsent(value) ? value : key;
    spec_.origins.Set(path, Where(at));
    if (leaf) {
      Reading reading = field.read(value, map_key, spec_);
      AddMistakes(reading.mistakes, path, key, value);
      return std::move(reading.value);
    }
    if (value.is_map()) return ReadKeys(value, field.doc.path, path, map_key);
    failed_.insert(path);
    if (!value.alias) {
      Add(Full(path), IsAbsent(value) ? key : value,
          fmt::format("{} is not a map", Describe(value)), "a map: " + field.doc.allowed,
          "write its keys below it, or leave the key out");
    }
    return nullptr;
  }

  void AddUnknown(const YamlNode& key, const std::string& pattern, const std::string& path) {
    std::vector<std::string> siblings = FieldKeys(pattern);
    std::string nearest = Nearest(key.text, siblings);
    std::string elsewhere = nearest.empty() ? FindElsewhere(key.text) : "";
    std::string next = "delete it";
    if (!nearest.empty()) {
      next = fmt::format("did you mean {}?", nearest);
      failed_.insert(path.empty() ? nearest : path + "." + nearest);
    } else if (!elsewhere.empty()) {
      next = fmt::format("did you mean {}?", Full(elsewhere));
      failed_.insert(elsewhere);
    }
    Add(Full(ChildPath(path, key)), key, "unknown key", OneOf(siblings), std::move(next));
  }

  // The only field whose last word is this one.
  static std::string FindElsewhere(const std::string& word) {
    std::string path;
    for (const Field& field : Fields()) {
      if (!field.doc.path.ends_with("." + word)) continue;
      if (!path.empty()) return "";
      path = field.doc.path;
    }
    return path;
  }

  void AddConflicts(const YamlNode& model) {
    for (Conflict& conflict : CrossCheck(spec_)) {
      if (HasFailed(conflict.field)) continue;
      const bool there = spec_.origins.Has(conflict.field);
      AddAt(there ? spec_.origins.Place(conflict.field) : Place(Full(conflict.field), model),
            std::move(conflict.found), std::move(conflict.allowed), std::move(conflict.next));
    }
  }

  // Whether a mistake at the field or below it is told already: then what is missing there is no
  // second mistake.
  bool HasFailed(const std::string& field) const {
    return std::any_of(failed_.begin(), failed_.end(), [&](const std::string& path) {
      return path == field || path.starts_with(field + ".");
    });
  }

  // True when there is none.
  bool AddMistakes(const std::vector<Mistake>& mistakes, const std::string& path,
                   const YamlNode& key, const YamlNode& value) {
    for (const Mistake& mistake : mistakes) {
      failed_.insert(path);
      const YamlNode& at = mistake.at == &value && IsAbsent(value) ? key : *mistake.at;
      Add(Full(path + mistake.below), at, mistake.found, mistake.allowed, mistake.next);
    }
    return mistakes.empty();
  }

  void Add(const std::string& path, const YamlNode& at, std::string found, std::string allowed,
           std::string next) {
    AddAt(Place(path, at), std::move(found), std::move(allowed), std::move(next));
  }

  void AddAt(std::string place, std::string found, std::string allowed, std::string next) {
    if (problems_.size() > kMaxProblems) return;
    problems_.push_back({std::move(place), std::move(found), std::move(allowed), std::move(next)});
  }

  // `path` counts from the root of the document.
  std::string Place(const std::string& path, const YamlNode& at) const {
    if (path.empty()) return Where(at);
    return in_manifest_ ? fmt::format("{} ({})", path, Where(at))
                        : fmt::format("{} {}", Where(at), path);
  }

  Problems Capped() {
    if (problems_.size() > kMaxProblems) {
      problems_.back() = {name_, fmt::format("more than {} mistakes", kMaxProblems), "a ModelSpec",
                          "mend those above first"};
    }
    return std::move(problems_);
  }

  // Served under the source's own name: the last part of its path without the ending, of a
  // config.json the folder's.
  void FillName() {
    if (!spec_.name.empty()) return;
    std::string stem = spec_.source.builtin;
    if (stem.empty()) {
      std::string_view path = spec_.source.path;
      while (path.ends_with('/')) path.remove_suffix(1);
      if (path.ends_with("/config.json")) path.remove_suffix(12);
      stem = path.substr(path.rfind('/') + 1);
      for (std::string_view ending : {".gguf", ".json"}) {
        if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
      }
    }
    for (char& c : stem) {
      if (!IsModelName(std::string_view(&c, 1)) && c != '.' && c != '_') c = '-';
    }
    stem.resize(std::min<size_t>(stem.size(), 128));
    spec_.name = IsModelName(stem) ? stem : "model";
  }

  static bool IsAbsent(const YamlNode& node) { return node.is_null() && !node.written; }
  std::string Where(const YamlNode& node) const {
    return fmt::format("{}:{}:{}", name_, node.line, node.column);
  }
  std::string Full(const std::string& path) const {
    if (base_.empty()) return path;
    return path.empty() ? base_ : base_ + "." + path;
  }

  const std::string& name_;
  Spec spec_;
  Problems problems_;
  std::set<std::string> failed_;  // fields of which a mistake is told
  bool in_manifest_ = false;
  std::string base_;  // path of the ModelSpec in the document
};

}  // namespace

Result<Spec> LoadSpec(std::string_view text, const std::string& name) {
  return Loader(name).Load(text);
}

Result<Spec> LoadSpecFile(const std::string& path) {
  Result<std::string> text = ReadTextFile(path, kSpecDocumentBytes);
  if (!text) return text.problems();
  return LoadSpec(*text, path);
}

}  // namespace ashlar
