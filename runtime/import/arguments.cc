#include "import/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/nearest.h"
#include "import/flags.h"
#include "import/words.h"
#include "spec/source_text.h"
#include "spec/spec.h"

namespace ashlar {
namespace {

using enum ImportNote::Outcome;

bool IsFlag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !std::isdigit(static_cast<unsigned char>(word[1])) &&
         word[1] != '.';
}

// "--max-model-len" or "-tp", without its value and dashes.
struct Named {
  const Flag* flag = nullptr;
  bool negated = false;
};
Named Find(std::string_view word) {
  if (!word.starts_with("--")) return {FindAlias(word.substr(1)), false};
  std::string_view name = word.substr(2);
  name = name.substr(0, name.find('.'));  // --compilation-config.level 3
  if (const Flag* flag = FindFlag(name)) return {flag, false};
  if (name.starts_with("no-") || name.starts_with("no_")) {
    const Flag* flag = FindFlag(name.substr(3));
    if (flag != nullptr && flag->takes == Takes::kNothing) return {flag, true};
  }
  return {};
}

std::string NearestFlag(std::string_view word) {
  std::vector<std::string> names;
  for (const Flag& flag : Flags()) names.push_back("--" + std::string(flag.name));
  std::string name(word);
  std::replace(name.begin(), name.end(), '_', '-');
  return Nearest(name, names);
}

// A switch that is turned off: only one of them is a field, and chunked prefill cannot be.
ImportNote Negated(const Flag& flag, const std::string& shown) {
  if (flag.outcome == kMapped) return {shown, kMapped, std::string(flag.field), ""};
  if (flag.name == "enable-chunked-prefill")
    return {shown, kRefused, "", "prompts are always taken in parts of limits.batchTokens"};
  return {shown, kNeedless, "",
          flag.outcome == kRefused ? "always so here" : std::string(flag.text)};
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t bytes = Utf8SequenceBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

constexpr std::string_view kMount = "/mnt/models";

// Whether a repository's name on a hub rather than a path: "org/name".
bool IsHubName(const std::string& model) {
  return !model.starts_with('/') && !model.starts_with('.') && !model.starts_with('~') &&
         !model.ends_with(".gguf") && std::count(model.begin(), model.end(), '/') <= 1;
}

}  // namespace

void Importer::Set(std::string_view field, Json value) {
  Json* at = &document_;
  for (size_t dot; (dot = field.find('.')) != field.npos; field.remove_prefix(dot + 1))
    at = &(*at)[std::string(field.substr(0, dot))];
  std::string leaf(field);
  if (!at->contains(leaf)) (*at)[leaf] = std::move(value);
}

void Importer::Assume(std::string_view name, bool on) {
  assume_ += fmt::format("{}{}={}", assume_.empty() ? "" : ",", name, on ? "on" : "off");
}

void Importer::Mistake(std::string found, std::string allowed, std::string next) {
  problems_.push_back({place_, std::move(found), std::move(allowed), std::move(next)});
}

void Importer::Model(const std::string& model, const std::string& shown) {
  if (document_.contains("source")) {
    bool mount = model == kMount;
    Note({shown, mount ? kNeedless : kRefused, "",
          mount ? "where KServe mounts the model" : "one server serves one model"});
    return;
  }
  std::string path = model, text;
  if (IsHubName(model)) {
    path = "/models/" + model.substr(model.rfind('/') + 1);
    text = fmt::format("the files of {} belong there", model);
    if (!document_.contains("name")) Set("name", model);
  }
  Set("source.path", path);
  Note({shown, kMapped, "source.path", text});
}

void Importer::Flag(std::string_view name, const std::string& value, const std::string& shown) {
  const ashlar::Flag* flag = FindFlag(name);
  Check(flag != nullptr, "a flag of the table");
  if (name == "model") return Model(value, shown);
  if (name == "attention-backend") attention_backend_ = value;
  if (name == "kv-transfer-config") Assume("connector", true);
  if (flag->convert == nullptr) {
    if (flag->outcome == kMapped) Set(flag->field, true);
    Note({shown, flag->outcome, std::string(flag->field), std::string(flag->text)});
    return;
  }
  Conversion made = flag->convert(value);
  if (made.outcome == kMapped) Set(flag->field, std::move(made.value));
  Note({shown, made.outcome, std::string(made.outcome == kMapped ? flag->field : ""),
        std::move(made.text)});
}

// The arguments, one after the other.
class Importer::Words {
 public:
  explicit Words(const std::vector<std::string>& words) : words_(words) {}
  bool done() const { return at_ == words_.size(); }
  bool value_next() const { return !done() && !IsFlag(words_[at_]); }
  const std::string& Take() { return words_[at_++]; }

 private:
  const std::vector<std::string>& words_;
  size_t at_ = 0;
};

void Importer::Arguments(const std::vector<std::string>& list) {
  for (const std::string& word : list) {
    if (!IsUtf8(word))
      return Mistake(Printable(word) + " is no text", "UTF-8", "write it in UTF-8");
  }
  for (Words words(list); !words.done();) {
    if (words.value_next()) {
      Positional(words.Take());
    } else {
      Argument(words);
    }
  }
}

void Importer::Positional(const std::string& word) {
  if (model_named_) {
    Note({ShownWord(word), kRefused, "", "a word that belongs to no flag"});
  } else {
    Model(word, ShownWord(word));
  }
  model_named_ = true;
}

void Importer::Argument(Words& words) {
  std::string word = words.Take();
  std::optional<std::string> value;
  if (size_t equals = word.find('='); equals != word.npos) {
    value = word.substr(equals + 1);
    word.resize(equals);
  }
  auto [flag, negated] = Find(word);
  if (flag == nullptr) {
    std::string nearest = NearestFlag(word);
    Note({Printable(word), kRefused, "",
          nearest.empty() ? "not known here" : fmt::format("not known here; {} is", nearest)});
    if (!value && words.value_next()) words.Take();  // its value: never the model
    return;
  }
  if (negated) {
    if (flag->outcome == kMapped) Set(flag->field, false);
    Note(Negated(*flag, word));
    return;
  }
  if (flag->takes == Takes::kNothing) return Flag(flag->name, "", word);
  if (!value && !words.value_next())
    return Mistake(fmt::format("{} has no value", Printable(word)), "a value after the flag",
                   "add it, or leave the flag out");
  if (!value) value = words.Take();
  bool secret = flag->name == "api-key" || flag->name == "hf-token";
  Flag(flag->name, *value, secret ? word : fmt::format("{} {}", word, Printable(*value)));
  model_named_ |= flag->name == "model";
  while (flag->takes == Takes::kValues && words.value_next()) {
    std::string more = words.Take();
    if (flag->outcome == kMapped)
      Note({fmt::format("{} {}", word, Printable(more)), kRefused, "", "one is taken: the first"});
  }
}

Result<Imported> Importer::Finish() {
  if (!document_.contains("source"))
    Mistake("no model", "a model as the first argument, or --model", "name the model");
  if (!problems_.empty()) return problems_;
  Json document = {{"apiVersion", "ashlar.dev/v1alpha1"}, {"kind", "ModelSpec"}};
  for (const char* key : {"name", "source", "platform", "parallel", "contextLength", "numerics",
                          "quantization", "kv", "backends", "limits", "server"}) {
    if (document_.contains(key)) document[key] = std::move(document_[key]);
  }
  Result<Spec> spec = LoadSpec(document.dump(2), place_);
  if (!spec) return spec.problems();
  return Imported{std::move(document), std::move(notes_), std::move(attention_backend_),
                  std::move(assume_)};
}

}  // namespace ashlar
