#include "spec/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <type_traits>

#include "base/nearest.h"
#include "spec/field_readers.h"
#include "spec/scalar.h"

namespace ashlar {
namespace {

// Kinds of KV groups as keys of `backends`; the meanings stand in docs/glossary.md.
constexpr std::array<std::string_view, 9> kKinds = {
    "full_attention",     "mla_attention",           "sliding_window",
    "sliding_window_mla", "chunked_local_attention", "sink_full_attention",
    "cross_attention",    "encoder_only_attention",  "mamba"};

constexpr int64_t kUnbounded = std::numeric_limits<int32_t>::max();

std::string IntegerText(int64_t min, int64_t max) {
  if (max < kUnbounded) return fmt::format("an integer from {} to {}", min, max);
  return min == 1 ? "a positive integer" : fmt::format("an integer of {} or more", min);
}

Field Object(std::string path, std::string allowed) {
  return {{std::move(path), "object", std::move(allowed), ""}, nullptr, nullptr};
}

// `get` returns a reference to the member, whose initial value is the default.
template <class Get>
Field Integer(std::string path, int64_t min, int64_t max, Get get, std::string fallback = "") {
  std::string allowed = IntegerText(min, max);
  if (fallback.empty()) {
    Spec defaults;
    fallback = fmt::format("{}", get(defaults));
  }
  return {{std::move(path), "integer", allowed, std::move(fallback)},
          [=](const YamlNode& node, std::string_view, Spec& spec) {
            Reading reading = ReadInteger(node, min, max, allowed);
            if (reading.value.is_number()) {
              get(spec) =
                  static_cast<std::decay_t<decltype(get(spec))>>(reading.value.get<int64_t>());
            }
            return reading;
          },
          nullptr};
}

template <class Get>
Field Text(std::string path, bool (*fits)(std::string_view), std::string allowed, std::string next,
           Get get, std::string fallback) {
  return {{std::move(path), "string", allowed, std::move(fallback)},
          [=](const YamlNode& node, std::string_view, Spec& spec) {
            Reading reading = ReadPattern(node, fits, allowed, next);
            if (reading.value.is_string()) get(spec) = reading.value.get<std::string>();
            return reading;
          },
          nullptr};
}

template <class Set>
Field Word(std::string path, std::vector<std::string> words, Set set, std::string fallback) {
  return {{std::move(path), "string", OneOf(words), std::move(fallback)},
          [=](const YamlNode& node, std::string_view, Spec& spec) {
            Reading reading = ReadWord(node, words);
            if (reading.value.is_string()) set(spec, reading.value.get<std::string>());
            return reading;
          },
          nullptr};
}

template <class Get>
Field Boolean(std::string path, Get get) {
  Spec defaults;
  return {{std::move(path), "boolean", "true or false", get(defaults) ? "true" : "false"},
          [=](const YamlNode& node, std::string_view, Spec& spec) {
            Reading reading = ReadBoolean(node);
            if (reading.value.is_boolean()) get(spec) = reading.value.get<bool>();
            return reading;
          },
          nullptr};
}

Field BlockSize() {
  std::string allowed = "auto, or a positive integer";
  std::vector<std::string> words = {"auto"};
  return {{"kv.blockSize", "intOrString", allowed, "auto"},
          [=](const YamlNode& node, std::string_view, Spec& spec) -> Reading {
            if (node.is_scalar() && node.text == "auto") {
              spec.kv.block_size = 0;
              return {"auto", {}};
            }
            Reading reading = ReadInteger(node, 1, kUnbounded, allowed);
            if (reading.value.is_number()) spec.kv.block_size = reading.value.get<int>();
            for (Mistake& mistake : reading.mistakes) {
              if (!Nearest(node.text, words).empty()) mistake.next = "did you mean auto?";
              if (mistake.next == "use 1 or more") mistake.next = "use auto, or for example 16";
            }
            return reading;
          },
          nullptr};
}

Field Memory() {
  std::string allowed = "a share from 1% to 100%, or an amount such as 12GiB";
  return {{"kv.memory", "string", allowed, "80%"},
          [=](const YamlNode& node, std::string_view, Spec& spec) {
            Reading reading = ReadMemory(node, allowed);
            if (reading.value.is_string()) spec.kv.memory = *ParseMemory(node.text);
            return reading;
          },
          nullptr};
}

Field Config() {
  std::string allowed = "a map with the keys of a Hugging Face config.json";
  return {{"source.config", "object", allowed, "the checkpoint's own"},
          [=](const YamlNode& node, std::string_view, Spec& spec) {
            if (node.alias) return Reading{};
            if (!node.is_map()) {
              return Refused(node, fmt::format("{} is not a map", Describe(node)), allowed,
                             "write its keys below, or leave config out");
            }
            Reading reading = ReadFree(node);
            if (reading.mistakes.empty()) spec.source.config = reading.value;
            return reading;
          },
          nullptr};
}

// "default", a kind, or the name of a group: a kind, or a kind and a number from 2 on
// ("sliding_window-2").
bool IsBackendsKey(std::string_view key) {
  if (key == "default") return true;
  size_t dash = key.rfind('-');
  if (dash != key.npos) {
    std::optional<int64_t> number = StrictInteger(key.substr(dash + 1));
    if (!number || *number < 2) return false;
    key = key.substr(0, dash);
  }
  return std::find(kKinds.begin(), kKinds.end(), key) != kKinds.end();
}

std::vector<Mistake> CheckBackendsKey(const YamlNode& key) {
  if (IsBackendsKey(key.text)) return {};
  std::vector<std::string> words = {"default"};
  words.insert(words.end(), kKinds.begin(), kKinds.end());
  std::string nearest = Nearest(key.text, words);
  return {{&key, fmt::format("{} is neither a kind nor a group", Describe(key)),
           "default, a kind, or a group's name: " + OneOf(words),
           nearest.empty() ? "use a name that `ashlar plan` shows"
                           : fmt::format("did you mean {}?", nearest),
           ""}};
}

Field Backends() {
  return {{"backends", "map", "default, a kind, or a group's name", "automatic"},
          nullptr,
          CheckBackendsKey};
}

Field BackendUse() {
  std::string allowed = "a backend's name, such as CPU_PAGED";
  return {{"backends.*.use", "string", allowed, ""},
          [=](const YamlNode& node, std::string_view key, Spec& spec) {
            Reading reading = ReadPattern(node, IsBackendName, allowed,
                                          "use capitals, digits and _, as `ashlar plan` shows it");
            if (reading.value.is_string())
              spec.backends[std::string(key)].use = reading.value.get<std::string>();
            return reading;
          },
          nullptr};
}

Field BackendList(std::string path, std::vector<std::string> BackendChoice::*member) {
  std::string allowed = "a list of backend names, such as [CPU_PAGED]";
  return {{std::move(path), "stringList", allowed, "[]"},
          [=](const YamlNode& node, std::string_view key, Spec& spec) {
            Reading reading = ReadList(node, IsBackendName, allowed);
            if (reading.mistakes.empty() && reading.value.is_array())
              spec.backends[std::string(key)].*member =
                  reading.value.get<std::vector<std::string>>();
            return reading;
          },
          nullptr};
}

void AddModel(std::vector<Field>& table) {
  auto ignored = [](Spec&, const std::string&) {};
  table.push_back(Word("apiVersion", {"ashlar.dev/v1alpha1"}, ignored, "ashlar.dev/v1alpha1"));
  table.push_back(Word("kind", {"ModelSpec"}, ignored, "ModelSpec"));
  table.push_back(Text(
      "name", IsModelName,
      "up to 128 letters, digits and . _ - / :, with a letter or digit at both ends",
      "use for example smollm2 or org/smollm2", [](Spec& s) -> std::string& { return s.name; },
      "the stem of source"));
  table.push_back(Object("source", "exactly one of path and builtin"));
  table.push_back(Text(
      "source.path", IsPath, "a .gguf, a directory of safetensors, or a config.json (plan only)",
      "name a local file or directory", [](Spec& s) -> std::string& { return s.source.path; }, ""));
  table.push_back(Text(
      "source.builtin", IsBuiltinName, "the name of a built-in model, such as demo", "write demo",
      [](Spec& s) -> std::string& { return s.source.builtin; }, ""));
  table.push_back(Config());
  table.push_back(Word(
      "platform", {"auto", "cuda", "hip", "cpu", "reference"},
      [](Spec& s, const std::string& word) { s.platform = word; }, "auto"));
  table.push_back(Object("parallel", "tensor and pipeline"));
  table.push_back(
      Integer("parallel.tensor", 1, 1024, [](Spec& s) -> int& { return s.parallel.tensor; }));
  table.push_back(
      Integer("parallel.pipeline", 1, 1024, [](Spec& s) -> int& { return s.parallel.pipeline; }));
  table.push_back(Object("cpu", "threads"));
  table.push_back(Integer(
      "cpu.threads", 1, 4096, [](Spec& s) -> int& { return s.cpu.threads; },
      "all that the process may use"));
  table.push_back(Integer(
      "contextLength", 1, kUnbounded,
      [](Spec& s) -> int64_t& {
        return s.context_length ? *s.context_length : s.context_length.emplace();
      },
      "the model's own, cut to what fits"));
  table.push_back(Word(
      "numerics", {"fast", "invariant"},
      [](Spec& s, const std::string& word) { s.invariant = word == "invariant"; }, "fast"));
  table.push_back(Word(
      "quantization", {"auto", "fp8"},
      [](Spec& s, const std::string& word) { s.quantization = word; }, "auto"));
}

void AddCache(std::vector<Field>& table) {
  table.push_back(Object("kv", "blockSize, dtype, layout, memory and prefixCache"));
  table.push_back(BlockSize());
  table.push_back(Word(
      "kv.dtype", {"auto", "float32", "float16", "bfloat16", "float8_e4m3"},
      [](Spec& s, const std::string& word) { s.kv.dtype = word; }, "auto"));
  table.push_back(Word(
      "kv.layout", {"auto", "LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"},
      [](Spec& s, const std::string& word) { s.kv.layout = word; }, "auto"));
  table.push_back(Memory());
  table.push_back(Boolean("kv.prefixCache", [](Spec& s) -> bool& { return s.kv.prefix_cache; }));
  table.push_back(Backends());
  table.push_back(Object("backends.*", "use or prefer, and forbid"));
  table.push_back(BackendUse());
  table.push_back(BackendList("backends.*.prefer", &BackendChoice::prefer));
  table.push_back(BackendList("backends.*.forbid", &BackendChoice::forbid));
}

void AddLimits(std::vector<Field>& table) {
  table.push_back(Object("limits", "sizes of a step, of the queue and of a request"));
  auto add = [&](const char* path, int64_t max, auto get) {
    table.push_back(Integer(path, 1, max, get));
  };
  add("limits.sequences", 65'536, [](Spec& s) -> int& { return s.limits.sequences; });
  add("limits.batchTokens", 1 << 20, [](Spec& s) -> int& { return s.limits.batch_tokens; });
  add("limits.queuedTokens", kUnbounded,
      [](Spec& s) -> int64_t& { return s.limits.queued_tokens; });
  add("limits.queuedRequests", 1 << 20, [](Spec& s) -> int& { return s.limits.queued_requests; });
  add("limits.queueSeconds", 86'400, [](Spec& s) -> int& { return s.limits.queue_seconds; });
  add("limits.messages", 65'536, [](Spec& s) -> int& { return s.limits.messages; });
  add("limits.prompts", 65'536, [](Spec& s) -> int& { return s.limits.prompts; });
  add("limits.choices", 1'024, [](Spec& s) -> int& { return s.limits.choices; });
}

void AddServer(std::vector<Field>& table) {
  table.push_back(Object("server", "address, key file, sizes and times of the HTTP server"));
  table.push_back(Text(
      "server.host", IsHost, "an address or host name", "write for example 0.0.0.0",
      [](Spec& s) -> std::string& { return s.server.host; }, "0.0.0.0"));
  table.push_back(Integer("server.port", 1, 65'535, [](Spec& s) -> int& { return s.server.port; }));
  table.push_back(Text(
      "server.apiKeyFile", IsPath, "a file with one key a line", "name a local file",
      [](Spec& s) -> std::string& { return s.server.api_key_file; }, "no key is asked for"));
  auto add = [&](const char* path, int64_t min, int64_t max, auto get) {
    table.push_back(Integer(path, min, max, get));
  };
  add("server.connections", 16, 65'536, [](Spec& s) -> int& { return s.server.connections; });
  add("server.bodyBytes", 1'024, 1 << 30, [](Spec& s) -> int64_t& { return s.server.body_bytes; });
  add("server.headSeconds", 1, 3'600, [](Spec& s) -> int& { return s.server.head_seconds; });
  add("server.bodySeconds", 1, 3'600, [](Spec& s) -> int& { return s.server.body_seconds; });
  add("server.idleSeconds", 1, 3'600, [](Spec& s) -> int& { return s.server.idle_seconds; });
  add("server.stuckReaderSeconds", 1, 3'600,
      [](Spec& s) -> int& { return s.server.stuck_reader_seconds; });
  add("server.lameDuckSeconds", 0, 3'600,
      [](Spec& s) -> int& { return s.server.lame_duck_seconds; });
  add("server.drainSeconds", 0, 86'400, [](Spec& s) -> int& { return s.server.drain_seconds; });
}

std::string_view Parent(std::string_view path) {
  size_t dot = path.rfind('.');
  return dot == path.npos ? std::string_view() : path.substr(0, dot);
}

std::string_view Leaf(std::string_view path) {
  size_t dot = path.rfind('.');
  return dot == path.npos ? path : path.substr(dot + 1);
}

}  // namespace

const std::vector<Field>& Fields() {
  static const std::vector<Field> table = [] {
    std::vector<Field> fields;
    AddModel(fields);
    AddCache(fields);
    AddLimits(fields);
    AddServer(fields);
    return fields;
  }();
  return table;
}

const Field* FindField(std::string_view path) {
  static const std::map<std::string, const Field*, std::less<>> index = [] {
    std::map<std::string, const Field*, std::less<>> by_path;
    for (const Field& field : Fields()) by_path[field.doc.path] = &field;
    return by_path;
  }();
  auto found = index.find(path);
  return found == index.end() ? nullptr : found->second;
}

std::vector<std::string> FieldKeys(std::string_view path) {
  std::vector<std::string> keys;
  for (const Field& field : Fields()) {
    if (Parent(field.doc.path) == path) keys.emplace_back(Leaf(field.doc.path));
  }
  return keys;
}

const std::vector<SpecField>& SpecFields() {
  static const std::vector<SpecField> docs = [] {
    std::vector<SpecField> rows;
    for (const Field& field : Fields()) rows.push_back(field.doc);
    return rows;
  }();
  return docs;
}

}  // namespace ashlar
