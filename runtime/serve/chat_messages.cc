#include "serve/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ashlar {
namespace {

constexpr size_t kAnyBytes = size_t{1} << 40;  // the body's own limit counts
constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};
// Variables that are ours to set.
constexpr std::array<std::string_view, 4> kReserved = {"messages", "tools", "documents",
                                                       "add_generation_prompt"};

// Text of a list of parts; only text is taken.
std::string JoinParts(FieldReader& fields, const std::string& path, const Json& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size() && !fields.full(); ++i) {
    std::string at = fmt::format("{}[{}]", path, i);
    if (!parts[i].is_object()) {
      fields.Fail(ErrorCode::kInvalidType, at, Quoted(parts[i]), "an object with type and text",
                  "send {\"type\": \"text\", \"text\": ...}");
      continue;
    }
    FieldReader part(parts[i], at + ".");
    std::string type = part.String("type", 64).value_or("");
    if (!part.failed() && type != "text") {
      part.Fail(type.empty() ? ErrorCode::kMissing : ErrorCode::kUnsupported, "type",
                type.empty() ? "it is absent" : "\"" + type + "\"",
                "text: this model reads nothing else", "send text parts only");
    }
    auto piece = part.String("text", kAnyBytes);
    if (!piece && type == "text") {
      part.Fail(ErrorCode::kMissing, "text", "it is absent", "a string", "add it");
    }
    fields.Adopt(part);
    if (i > 0) text += '\n';
    text += piece.value_or("");
  }
  return text;
}

Json ReadToolCall(FieldReader& fields, const std::string& path, const Json& value) {
  if (!value.is_object()) {
    fields.Fail(ErrorCode::kInvalidType, path, Quoted(value), "an object with id and function",
                "send the call as it was answered");
    return nullptr;
  }
  FieldReader call(value, path + ".");
  Json out = {{"id", call.String("id", 256).value_or("")}, {"type", "function"}};
  const Json* function = call.Find("function");
  if (function == nullptr || !function->is_object()) {
    call.Fail(function == nullptr ? ErrorCode::kMissing : ErrorCode::kInvalidType, "function",
              function == nullptr ? "it is absent" : Quoted(*function),
              "an object with name and arguments", "send the call as it was answered");
    fields.Adopt(call);
    return nullptr;
  }
  FieldReader inner(*function, path + ".function.");
  auto name = inner.String("name", 256);
  if (!name) inner.Fail(ErrorCode::kMissing, "name", "it is absent", "a string", "add it");
  const Json* arguments = inner.Find("arguments");
  if (arguments != nullptr && !arguments->is_string() && !arguments->is_object()) {
    inner.Fail(ErrorCode::kInvalidType, "arguments", Quoted(*arguments),
               "a string that holds a JSON object", "send it as a string");
  }
  fields.Adopt(call);
  fields.Adopt(inner);
  if (fields.failed()) return nullptr;
  Json read = arguments == nullptr ? Json::object() : *arguments;
  if (read.is_string()) {
    Result<Json> object = ParseJson(read.get_ref<const std::string&>(), "arguments");
    if (object && object->is_object()) read = std::move(*object);
  }
  out["function"] = {{"name", *name}, {"arguments", std::move(read)}};
  return out;
}

Json ReadToolCalls(FieldReader& fields, const std::string& path, const Json& value) {
  if (!value.is_array() || value.size() > 128) {
    fields.Fail(value.is_array() ? ErrorCode::kInvalidValue : ErrorCode::kInvalidType, path,
                value.is_array() ? fmt::format("{} calls", value.size()) : Quoted(value),
                "a list of at most 128 tool calls", "send the calls as they were answered");
    return nullptr;
  }
  Json calls = Json::array();
  for (size_t i = 0; i < value.size() && !fields.full(); ++i) {
    calls.push_back(ReadToolCall(fields, fmt::format("{}[{}]", path, i), value[i]));
  }
  return calls;
}

Json ReadMessage(FieldReader& fields, const std::string& path, const Json& value) {
  if (!value.is_object()) {
    fields.Fail(ErrorCode::kInvalidType, path, Quoted(value), "an object with role and content",
                "send {\"role\": \"user\", \"content\": ...}");
    return nullptr;
  }
  FieldReader message(value, path + ".");
  std::string role = message.String("role", 64).value_or("");
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    message.Fail(role.empty() ? ErrorCode::kMissing : ErrorCode::kInvalidValue, "role",
                 role.empty() ? "it is absent" : Quoted(Json(role)),
                 "system, developer, user, assistant or tool", "choose one of these");
  }
  Json out = {{"role", role == "developer" ? "system" : role}};
  const Json* content = message.Find("content");
  const Json* calls = message.Find("tool_calls");
  if (content != nullptr && content->is_array()) {
    out["content"] = JoinParts(fields, path + ".content", *content);
  } else if (content != nullptr && !content->is_string()) {
    message.Fail(ErrorCode::kInvalidType, "content", Quoted(*content),
                 "a string or a list of text parts", "send one of these");
  } else if (content != nullptr) {
    out["content"] = *content;
  } else if (role == "assistant" && calls != nullptr) {
    out["content"] = "";
  } else {
    message.Fail(ErrorCode::kMissing, "content", "it is absent", "a string or a list of text parts",
                 "add it");
  }
  for (std::string_view name : {"name", "tool_call_id", "reasoning_content"}) {
    if (auto text = message.String(name, kAnyBytes)) out[std::string(name)] = *text;
  }
  if (role == "tool" && !out.contains("tool_call_id")) {
    message.Fail(ErrorCode::kMissing, "tool_call_id", "it is absent",
                 "the id of the call that this answers", "add it");
  }
  fields.Adopt(message);
  if (calls != nullptr) out["tool_calls"] = ReadToolCalls(fields, path + ".tool_calls", *calls);
  return out;
}

Json ReadMessages(FieldReader& fields, const RequestLimits& limits) {
  const Json* value = fields.Find("messages");
  std::string allowed = fmt::format("a list of 1 to {} messages", limits.messages);
  if (value == nullptr) {
    fields.Fail(ErrorCode::kMissing, "messages", "it is absent", allowed, "add it");
    return nullptr;
  }
  if (!value->is_array()) {
    fields.Fail(ErrorCode::kInvalidType, "messages", Quoted(*value), allowed, "send a list");
    return nullptr;
  }
  if (value->empty() || static_cast<int>(value->size()) > limits.messages) {
    fields.Fail(ErrorCode::kInvalidValue, "messages", fmt::format("{} messages", value->size()),
                allowed, "send a conversation within these");
    return nullptr;
  }
  Json messages = Json::array();
  for (size_t i = 0; i < value->size() && !fields.full(); ++i) {
    messages.push_back(ReadMessage(fields, fmt::format("messages[{}]", i), (*value)[i]));
  }
  return messages;
}

}  // namespace

Json ReadChatDocument(FieldReader& fields, const RequestLimits& limits) {
  Json document = {
      {"messages", ReadMessages(fields, limits)},
      {"tools", nullptr},
      {"documents", nullptr},
      {"add_generation_prompt", fields.Boolean("add_generation_prompt").value_or(true)}};
  const Json* extra = fields.Find("chat_template_kwargs");
  if (extra == nullptr) return document;
  if (!extra->is_object()) {
    fields.Fail(ErrorCode::kInvalidType, "chat_template_kwargs", Quoted(*extra),
                "an object of template variables", "send an object");
    return document;
  }
  for (const auto& [name, value] : extra->items()) {
    if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
      fields.Fail(ErrorCode::kInvalidValue, "chat_template_kwargs." + name, "it is set already",
                  "variables other than messages, tools, documents and add_generation_prompt",
                  "use the request's own field");
      continue;
    }
    document[name] = value;
  }
  return document;
}

}  // namespace ashlar
