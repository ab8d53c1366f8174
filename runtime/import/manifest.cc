#include <fmt/format.h>

#include <array>
#include <map>

#include "import/arguments.h"
#include "import/command.h"
#include "import/import.h"
#include "import/words.h"
#include "spec/scalar.h"
#include "spec/source_text.h"
#include "spec/yaml_tree.h"

namespace ashlar {
namespace {

using enum ImportNote::Outcome;

// Where a kind keeps its pod.
struct PodPath {
  std::string_view kind;
  std::array<std::string_view, 4> path;  // "" ends
};
constexpr std::array<PodPath, 9> kPodPaths = {{
    {"Pod", {"spec"}},
    {"Deployment", {"spec", "template", "spec"}},
    {"StatefulSet", {"spec", "template", "spec"}},
    {"DaemonSet", {"spec", "template", "spec"}},
    {"ReplicaSet", {"spec", "template", "spec"}},
    {"Job", {"spec", "template", "spec"}},
    {"PodTemplate", {"template", "spec"}},
    {"LeaderWorkerSet", {"spec", "leaderWorkerTemplate", "leaderTemplate", "spec"}},
    {"LLMInferenceService", {"spec", "template"}},
}};

const YamlNode* At(const YamlNode* node, std::string_view key) {
  return node != nullptr && node->is_map() ? node->Find(key) : nullptr;
}
std::string TextAt(const YamlNode* node, std::string_view key) {
  const YamlNode* value = At(node, key);
  return value != nullptr && value->is_scalar() ? value->text : "";
}
std::string Where(const std::string& name, const YamlNode& node) {
  return fmt::format("{}:{}:{}", name, node.line, node.column);
}

std::vector<std::string> Words(const YamlNode* list) {
  std::vector<std::string> words;
  if (list == nullptr || !list->is_list()) return words;
  for (const YamlNode& item : list->items) words.push_back(item.text);
  return words;
}

// Literal values only: a value from a Secret or a ConfigMap is not in the manifest.
std::map<std::string, std::string> Variables(const YamlNode* container) {
  std::map<std::string, std::string> values;
  const YamlNode* env = At(container, "env");
  if (env == nullptr || !env->is_list()) return values;
  for (const YamlNode& item : env->items) {
    const YamlNode* value = At(&item, "value");
    if (value != nullptr && value->is_scalar()) values[TextAt(&item, "name")] = value->text;
  }
  return values;
}

bool RunsVllm(const YamlNode& container) {
  if (TextAt(&container, "image").find("vllm") != std::string::npos) return true;
  for (const char* key : {"command", "args"}) {
    for (const std::string& word : Words(At(&container, key))) {
      if (word.find("vllm") != std::string::npos) return true;
    }
  }
  return false;
}

Result<const YamlNode*> PickContainer(const YamlNode* pod, const YamlNode& root,
                                      const std::string& name, const std::string& wanted) {
  const YamlNode* list = At(pod, "containers");
  std::vector<const YamlNode*> fitting;
  std::vector<std::string> names;
  if (list != nullptr && list->is_list()) {
    for (const YamlNode& container : list->items) {
      names.push_back(TextAt(&container, "name"));
      if (wanted.empty() ? RunsVllm(container) : names.back() == wanted)
        fitting.push_back(&container);
    }
    if (fitting.empty() && wanted.empty() && list->items.size() == 1)
      fitting.push_back(&list->items.front());
  }
  if (fitting.size() == 1) return fitting.front();
  return Problem{Where(name, list != nullptr ? *list : root),
                 names.empty() ? "no container"
                               : fmt::format("{} of the containers {} {}", fitting.size(),
                                             fmt::join(names, ", "),
                                             wanted.empty() ? "run vLLM" : "are named " + wanted),
                 "one container that runs vLLM", "name it with --container"};
}

// A number of devices under resources.limits.
void ReadDevices(const YamlNode* container, Importer& importer) {
  const YamlNode* limits = At(At(container, "resources"), "limits");
  for (auto [resource, platform] :
       {std::pair("nvidia.com/gpu", "cuda"), std::pair("amd.com/gpu", "hip")}) {
    std::string count = TextAt(limits, resource);
    if (count.empty()) continue;
    importer.Set("platform", platform);
    importer.Note({fmt::format("{}: {}", resource, Printable(count)), kMapped, "platform",
                   "devices are asked for by the InferenceModel's accelerator"});
  }
}

// Variables that say what vLLM's installation does.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kAssumptions = {{
    {"VLLM_ROCM_USE_AITER", "aiter"},
    {"VLLM_ROCM_USE_AITER_MHA", "aiterMha"},
    {"VLLM_ROCM_USE_AITER_MLA", "aiterMla"},
    {"VLLM_ROCM_SHUFFLE_KV_CACHE_LAYOUT", "shuffle"},
}};

// As vLLM reads a switch.
bool IsOn(const std::string& value) {
  return value == "1" || value == "true" || value == "True" || value == "TRUE";
}

void ReadVariables(const std::map<std::string, std::string>& values, Importer& importer) {
  for (const auto& [name, value] : values) {
    if (!name.starts_with("VLLM_")) continue;
    std::string shown = "env " + Printable(name);
    for (auto [variable, assumption] : kAssumptions) {
      if (name == variable) importer.Assume(assumption, IsOn(value));
    }
    if (name == "VLLM_ATTENTION_BACKEND") {
      importer.Flag("attention-backend", value, shown);
    } else if (name == "VLLM_BATCH_INVARIANT" && value != "0") {
      importer.Set("numerics", "invariant");
      importer.Note({shown, kMapped, "numerics", ""});
    } else if (name == "VLLM_API_KEY") {
      importer.Flag("api-key", value, shown);
    } else {
      importer.Note({shown, kNeedless, "", "no environment variable changes behaviour"});
    }
  }
}

// command and args together; a script given to a shell is read, not run.
Result<std::vector<std::string>> ContainerWords(const YamlNode* container,
                                                const std::map<std::string, std::string>& values,
                                                Importer& importer) {
  std::vector<std::string> words = Words(At(container, "command"));
  for (std::string& word : Words(At(container, "args"))) words.push_back(std::move(word));
  for (std::string& word : words) word = Substitute(word, values, false);
  size_t script = words.size();
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    bool shell = words[0].ends_with("sh") && words[i].starts_with('-') && words[i].ends_with('c');
    if (shell) script = i + 1;
    if (!words[i].starts_with('-') && i > 0) break;
  }
  if (script >= words.size()) return ServerArguments(words).value_or(words);

  Result<std::vector<std::vector<std::string>>> commands =
      ShellCommands(words[script], importer.place());
  if (!commands) return commands.problems();
  std::optional<std::vector<std::string>> found;
  for (std::vector<std::string>& command : *commands) {
    std::optional<std::vector<std::string>> arguments = ServerArguments(command);
    if (arguments && !found) {
      found = std::move(arguments);
    } else {
      importer.Note({ShownWord(command.front()), kRefused, "", "other commands are left out"});
    }
  }
  if (!found)
    return Problem{importer.place(), "a script that never runs vllm serve",
                   "vllm serve or python -m vllm.entrypoints...", "give its command line"};
  for (std::string& word : *found) word = Substitute(word, values, true);
  return *found;
}

// What KServe states beside the container: the model and how it is split.
void ReadInferenceService(const YamlNode* spec, Importer& importer) {
  const YamlNode* model = At(spec, "model");
  if (std::string name = TextAt(model, "name"); !name.empty())
    importer.Flag("served-model-name", name, "spec.model.name " + Printable(name));
  if (std::string uri = TextAt(model, "uri"); !uri.empty()) {
    size_t scheme = uri.find("://");
    std::string path = scheme == uri.npos ? uri : uri.substr(scheme + 3);
    std::string shown = "spec.model.uri " + Printable(uri);
    if (uri.starts_with("hf://") || scheme == uri.npos) {
      importer.Model(path, shown);
    } else {
      importer.Model("/models/" + path.substr(path.rfind('/') + 1), shown);
      importer.Note({shown, kNeedless, "", "the InferenceModel's source fetches or mounts it"});
    }
  }
  const YamlNode* parallelism = At(spec, "parallelism");
  for (auto [key, flag] :
       {std::pair("tensor", "tensor-parallel-size"),
        std::pair("pipeline", "pipeline-parallel-size"), std::pair("data", "data-parallel-size")}) {
    std::string size = TextAt(parallelism, key);
    if (!size.empty())
      importer.Flag(flag, size, fmt::format("spec.parallelism.{} {}", key, Printable(size)));
  }
  if (std::string replicas = TextAt(spec, "replicas"); !replicas.empty())
    importer.Note(
        {"spec.replicas " + Printable(replicas), kNeedless, "", "replicas of the InferenceModel"});
}

}  // namespace

Result<Imported> ImportManifest(std::string_view text, const std::string& name,
                                const std::string& container_name) {
  YamlTree tree = ParseYaml(text, name);
  if (!tree.problems.empty()) return tree.problems;
  std::string kind = TextAt(&tree.root, "kind");
  const YamlNode* pod = nullptr;
  std::vector<std::string_view> kinds;
  for (const PodPath& row : kPodPaths) {
    kinds.push_back(row.kind);
    if (row.kind != kind) continue;
    pod = &tree.root;
    for (std::string_view key : row.path) pod = key.empty() ? pod : At(pod, key);
  }
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    return Problem{Where(name, tree.root),
                   kind.empty() ? "no kind" : fmt::format("kind {}", Printable(kind)),
                   fmt::format("{}", fmt::join(kinds, ", ")), "give one such document"};

  bool service = kind == "LLMInferenceService";
  const YamlNode* container = nullptr;
  if (!service || pod != nullptr) {
    Result<const YamlNode*> picked = PickContainer(pod, tree.root, name, container_name);
    if (!picked) return picked.problems();
    container = *picked;
  }
  Importer importer(container == nullptr
                        ? name
                        : fmt::format("{} container {}", name, TextAt(container, "name")));
  if (service) ReadInferenceService(At(&tree.root, "spec"), importer);
  if (container != nullptr) {
    std::map<std::string, std::string> values = Variables(container);
    Result<std::vector<std::string>> words = ContainerWords(container, values, importer);
    if (!words) return words.problems();
    importer.Arguments(*words);
    ReadVariables(values, importer);
    ReadDevices(container, importer);
  }
  return importer.Finish();
}

}  // namespace ashlar
