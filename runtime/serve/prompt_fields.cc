#include "serve/prompt_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ashlar {
namespace {

constexpr std::string_view kPromptForms =
    "a string, a list of strings, a list of token ids or a list of lists of token ids";

std::optional<int32_t> TokenIdOf(const Json& value, int32_t vocabulary) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() >= static_cast<uint64_t>(vocabulary)) {
    return std::nullopt;
  }
  int64_t id = value.get<int64_t>();
  if (id < 0 || id >= vocabulary) return std::nullopt;
  return static_cast<int32_t>(id);
}

std::string AllowedIds(int32_t vocabulary) {
  return fmt::format("token ids from 0 to {}", vocabulary - 1);
}

// The ids of one list; empty after a failure.
std::vector<int32_t> ReadIds(FieldReader& fields, const std::string& path, const Json& list,
                             const RequestLimits& limits) {
  if (static_cast<int64_t>(list.size()) > limits.context_length) {
    fields.Fail(
        ErrorCode::kContextLength, path, fmt::format("{} tokens", list.size()),
        fmt::format("at most {} tokens, the context length of this model", limits.context_length),
        "shorten the prompt");
    return {};
  }
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    auto id = TokenIdOf(list[i], limits.vocabulary);
    if (!id) {
      fields.Fail(ErrorCode::kInvalidValue, fmt::format("{}[{}]", path, i),
                  Quoted(list[i]) + " is no token id", AllowedIds(limits.vocabulary),
                  "send ids of this model's vocabulary");
      return {};
    }
    ids.push_back(*id);
  }
  return ids;
}

void AddPrompt(FieldReader& fields, const std::string& path, const Json& value, bool strings,
               const RequestLimits& limits, std::vector<Prompt>& prompts) {
  if (fields.full()) return;
  if (strings ? !value.is_string() : !value.is_array()) {
    fields.Fail(ErrorCode::kInvalidType, path, Quoted(value) + " beside another kind",
                std::string(kPromptForms), "send one kind only");
    return;
  }
  if (strings) {
    prompts.emplace_back(value.get<std::string>());
    return;
  }
  if (value.empty()) {
    fields.Fail(ErrorCode::kInvalidValue, path, "a list without ids", std::string(kPromptForms),
                "send at least one id");
    return;
  }
  prompts.emplace_back(ReadIds(fields, path, value, limits));
}

}  // namespace

std::vector<Prompt> ReadPrompts(FieldReader& fields, const RequestLimits& limits) {
  const Json* value = fields.Find("prompt");
  if (value == nullptr) {
    fields.Fail(ErrorCode::kMissing, "prompt", "it is absent", std::string(kPromptForms), "add it");
    return {};
  }
  std::vector<Prompt> prompts;
  if (value->is_string()) {
    prompts.emplace_back(value->get<std::string>());
    return prompts;
  }
  if (!value->is_array() || value->empty()) {
    fields.Fail(value->is_array() ? ErrorCode::kInvalidValue : ErrorCode::kInvalidType, "prompt",
                value->is_array() ? "an empty list" : Quoted(*value), std::string(kPromptForms),
                "send a prompt");
    return prompts;
  }
  const Json& first = value->front();
  if (first.is_number()) {
    prompts.emplace_back(ReadIds(fields, "prompt", *value, limits));
    return prompts;
  }
  if (!first.is_string() && !first.is_array()) {
    fields.Fail(ErrorCode::kInvalidType, "prompt[0]", Quoted(first), std::string(kPromptForms),
                "send one of these");
    return prompts;
  }
  if (static_cast<int64_t>(value->size()) > limits.prompts) {
    fields.Fail(ErrorCode::kInvalidValue, "prompt", fmt::format("{} prompts", value->size()),
                fmt::format("at most {} in one request", limits.prompts), "send several requests");
    return prompts;
  }
  for (size_t i = 0; i < value->size(); ++i) {
    AddPrompt(fields, fmt::format("prompt[{}]", i), (*value)[i], first.is_string(), limits,
              prompts);
  }
  return prompts;
}

void ReadStops(FieldReader& fields, const RequestLimits& limits, ApiRequest& request) {
  std::string allowed = fmt::format("a string or up to {} of them, each of 1 to {} bytes",
                                    limits.stops, limits.stop_bytes);
  auto add = [&](const std::string& path, const Json& value) {
    if (!value.is_string()) {
      fields.Fail(ErrorCode::kInvalidType, path, Quoted(value) + " is no string", allowed,
                  "send strings");
      return;
    }
    const std::string& text = value.get_ref<const std::string&>();
    if (text.empty() || text.size() > limits.stop_bytes) {
      fields.Fail(ErrorCode::kInvalidValue, path, fmt::format("a string of {} bytes", text.size()),
                  allowed, "shorten it or leave it out");
      return;
    }
    request.stops.push_back(text);
  };
  if (const Json* stop = fields.Find("stop"); stop != nullptr && !stop->is_array()) {
    add("stop", *stop);
  } else if (stop != nullptr && static_cast<int>(stop->size()) > limits.stops) {
    fields.Fail(ErrorCode::kInvalidValue, "stop", fmt::format("{} strings", stop->size()), allowed,
                "keep the most important ones");
  } else if (stop != nullptr) {
    for (size_t i = 0; i < stop->size(); ++i) add(fmt::format("stop[{}]", i), (*stop)[i]);
  }

  const Json* ids = fields.Find("stop_token_ids");
  if (ids == nullptr) return;
  if (!ids->is_array() || static_cast<int>(ids->size()) > limits.stop_ids) {
    fields.Fail(ids->is_array() ? ErrorCode::kInvalidValue : ErrorCode::kInvalidType,
                "stop_token_ids",
                ids->is_array() ? fmt::format("{} ids", ids->size()) : Quoted(*ids),
                fmt::format("a list of at most {} token ids", limits.stop_ids), "send fewer");
    return;
  }
  request.stop_ids = ReadIds(fields, "stop_token_ids", *ids, limits);
}

void ReadLogitBias(FieldReader& fields, const RequestLimits& limits, Sampling& sampling) {
  const Json* biases = fields.Find("logit_bias");
  if (biases == nullptr) return;
  if (!biases->is_object() || static_cast<int>(biases->size()) > limits.biases) {
    fields.Fail(biases->is_object() ? ErrorCode::kInvalidValue : ErrorCode::kInvalidType,
                "logit_bias",
                biases->is_object() ? fmt::format("{} entries", biases->size()) : Quoted(*biases),
                fmt::format("an object of at most {} ids, each with a number from -100 to 100",
                            limits.biases),
                "send fewer");
    return;
  }
  for (const auto& [name, value] : biases->items()) {
    int32_t id = -1;
    auto parsed = std::from_chars(name.data(), name.data() + name.size(), id);
    bool whole = parsed.ec == std::errc() && parsed.ptr == name.data() + name.size();
    if (!whole || id < 0 || id >= limits.vocabulary) {
      fields.Fail(ErrorCode::kInvalidValue, "logit_bias",
                  fmt::format("\"{}\" is no token id", name.substr(0, 32)),
                  AllowedIds(limits.vocabulary), "use ids of this model's vocabulary");
      return;
    }
    if (!value.is_number() || !(value.get<double>() >= -100 && value.get<double>() <= 100)) {
      fields.Fail(value.is_number() ? ErrorCode::kInvalidValue : ErrorCode::kInvalidType,
                  fmt::format("logit_bias.{}", id), Quoted(value), "a number from -100 to 100",
                  "choose one of these");
      return;
    }
    sampling.logit_bias.emplace_back(id, value.get<float>());
  }
}

}  // namespace ashlar
