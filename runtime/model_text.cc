#include "model_text.h"

namespace ashlar {
namespace {

template <class T>
const T* GgufField(const Checkpoint& checkpoint, const std::string& key) {
  auto entry = checkpoint.gguf.find(key);
  return entry == checkpoint.gguf.end() ? nullptr : std::get_if<T>(&entry->second);
}

std::string GgufString(const Checkpoint& checkpoint, const std::string& key) {
  const std::string* text = GgufField<std::string>(checkpoint, key);
  return text == nullptr ? "" : *text;
}

int32_t GgufId(const Checkpoint& checkpoint, const std::string& key) {
  if (const auto* id = GgufField<uint64_t>(checkpoint, key)) {
    return *id < (uint64_t{1} << 31) ? static_cast<int32_t>(*id) : -1;
  }
  const auto* id = GgufField<int64_t>(checkpoint, key);
  return id != nullptr && *id >= 0 && *id < (int64_t{1} << 31) ? static_cast<int32_t>(*id) : -1;
}

bool GgufFlag(const Checkpoint& checkpoint, const std::string& key, bool fallback) {
  const bool* flag = GgufField<bool>(checkpoint, key);
  return flag == nullptr ? fallback : *flag;
}

template <class T>
std::span<const T> GgufList(const Checkpoint& checkpoint, const std::string& key) {
  const auto* list = GgufField<std::vector<T>>(checkpoint, key);
  return list == nullptr ? std::span<const T>() : std::span<const T>(*list);
}

Result<std::unique_ptr<Tokenizer>> FromGguf(const Checkpoint& checkpoint) {
  const std::string prefix = "tokenizer.ggml.";
  GgufVocabulary vocabulary;
  vocabulary.model = GgufString(checkpoint, prefix + "model");
  vocabulary.pre = GgufString(checkpoint, prefix + "pre");
  vocabulary.tokens = GgufList<std::string>(checkpoint, prefix + "tokens");
  vocabulary.scores = GgufList<double>(checkpoint, prefix + "scores");
  vocabulary.token_types = GgufList<int64_t>(checkpoint, prefix + "token_type");
  vocabulary.merges = GgufList<std::string>(checkpoint, prefix + "merges");
  vocabulary.bos = GgufId(checkpoint, prefix + "bos_token_id");
  vocabulary.eos = GgufId(checkpoint, prefix + "eos_token_id");
  vocabulary.add_bos = GgufFlag(checkpoint, prefix + "add_bos_token", vocabulary.model == "llama");
  vocabulary.add_eos = GgufFlag(checkpoint, prefix + "add_eos_token", false);
  vocabulary.add_space_prefix =
      GgufFlag(checkpoint, prefix + "add_space_prefix", vocabulary.model == "llama");
  return Tokenizer::FromGguf(vocabulary);
}

// tokenizer_config.json states a special token as a string or as an object with `content`.
std::string SpecialToken(const Checkpoint& checkpoint, const char* key, const char* gguf_key) {
  if (checkpoint.format == Checkpoint::Format::kGguf) {
    auto tokens = GgufList<std::string>(checkpoint, "tokenizer.ggml.tokens");
    int32_t id = GgufId(checkpoint, gguf_key);
    return id >= 0 && static_cast<size_t>(id) < tokens.size() ? tokens[static_cast<size_t>(id)]
                                                              : "";
  }
  if (!checkpoint.tokenizer_config || !checkpoint.tokenizer_config->is_object()) return "";
  auto member = checkpoint.tokenizer_config->find(key);
  if (member == checkpoint.tokenizer_config->end()) return "";
  if (member->is_object() && member->contains("content")) member = member->find("content");
  return member->is_string() ? member->get<std::string>() : "";
}

Problems At(const std::string& place, Problems problems) {
  for (Problem& problem : problems) problem.place = place + " " + problem.place;
  return problems;
}

}  // namespace

Result<ModelText> LoadModelText(const Checkpoint& checkpoint) {
  bool gguf = checkpoint.format == Checkpoint::Format::kGguf;
  if (!gguf && checkpoint.tokenizer_json.empty()) {
    return Problem{checkpoint.path, "has no tokenizer.json", "a tokenizer.json beside config.json",
                   "copy it from the model's repository"};
  }
  auto tokenizer = gguf ? FromGguf(checkpoint) : Tokenizer::FromJson(checkpoint.tokenizer_json);
  if (!tokenizer) return At(checkpoint.path, tokenizer.problems());
  ModelText text{std::move(*tokenizer), nullptr};

  std::string source =
      gguf ? GgufString(checkpoint, "tokenizer.chat_template") : checkpoint.chat_template;
  if (source.empty()) return text;
  auto chat_template = ChatTemplate::Compile(
      source, SpecialToken(checkpoint, "bos_token", "tokenizer.ggml.bos_token_id"),
      SpecialToken(checkpoint, "eos_token", "tokenizer.ggml.eos_token_id"));
  if (!chat_template) return At(checkpoint.path, chat_template.problems());
  text.chat_template = std::move(*chat_template);
  return text;
}

}  // namespace ashlar
