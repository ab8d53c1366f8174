#include "spec/field_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/nearest.h"
#include "spec/scalar.h"
#include "spec/source_text.h"

namespace ashlar {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlnum(char c) { return IsLower(c) || IsUpper(c) || IsDigit(c); }

// Digits without a leading zero, as many as there may be.
bool HasOnlyDigits(std::string_view text) {
  return !text.empty() && text[0] != '0' && std::all_of(text.begin(), text.end(), IsDigit);
}

bool HasControl(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    size_t size = Utf8SequenceBytes(text.substr(i));
    std::string_view sequence = text.substr(i, size == 0 ? 1 : size);
    if (size == 0 || IsControl(sequence) || sequence == "\n" || sequence == "\r" ||
        sequence == "\t")
      return true;
    i += size;
  }
  return false;
}

// A node that is no scalar at all, where a scalar belongs. Nodes refused as aliases are not refused
// twice.
std::optional<Reading> NotScalar(const YamlNode& node, const std::string& allowed) {
  if (node.is_scalar()) return std::nullopt;
  if (node.alias) return Reading{};
  std::string next = node.is_null() ? "write a value, or leave the key out for the default"
                                    : "write one plain value";
  return Refused(node, Describe(node), allowed, next);
}

// The spelling that ParseMemory takes for what somebody else's spelling means.
std::string MeantMemory(std::string_view text) {
  std::string compact;
  for (char c : text) {
    if (c != ' ') compact += c;
  }
  if (ParseMemory(compact)) return compact;
  std::string with_unit = compact + "B";  // Kubernetes writes 12Gi, 12G
  if (!compact.empty() && !IsDigit(compact.back()) && ParseMemory(with_unit)) return with_unit;
  return "";
}

// Adds the mistakes of the part that lies `below` a value to those of the whole.
void Take(const Reading& part, const std::string& below, Reading& whole) {
  for (Mistake mistake : part.mistakes) {
    mistake.below = below + mistake.below;
    whole.mistakes.push_back(std::move(mistake));
  }
}

Reading ReadFreeScalar(const YamlNode& node) {
  if (HasControl(node.text)) {
    return Refused(node, fmt::format("{} holds a control character", Describe(node)),
                   "printable text in one line", "delete it");
  }
  if (node.quoted) return {node.text, {}};
  if (node.text == "true" || node.text == "false") return {node.text == "true", {}};
  if (IsJsonNumber(node.text)) {
    Result<Json> number = ParseJson(node.text, "");
    if (number) return {*number, {}};
    return Refused(node, fmt::format("{} is out of range", Describe(node)),
                   "a number that a double holds", "write a smaller number");
  }
  if (IsOtherThanText(node.text)) {
    return Refused(node,
                   fmt::format("{} is read differently by different YAML readers", Describe(node)),
                   "JSON's numbers, true, false and null, or text",
                   fmt::format("write \"{}\" if it is text", Printable(node.text)));
  }
  return {node.text, {}};
}

}  // namespace

void Append(Json& object, const std::string& key, Json value) {
  object.get_ref<Json::object_t&>().emplace_back(key, std::move(value));
}

Reading Refused(const YamlNode& node, std::string found, std::string allowed, std::string next) {
  return {nullptr, {{&node, std::move(found), std::move(allowed), std::move(next), ""}}};
}

Reading ReadInteger(const YamlNode& node, int64_t min, int64_t max, const std::string& allowed) {
  if (auto refused = NotScalar(node, allowed)) return *refused;
  std::optional<int64_t> value = node.quoted ? std::nullopt : StrictInteger(node.text);
  if (!value && !node.quoted && HasOnlyDigits(node.text)) {
    return Refused(node, fmt::format("{} is too large", Describe(node)), allowed,
                   fmt::format("use {} or less", max));
  }
  if (!value) {
    std::optional<int64_t> meant = MeantInteger(node.text);
    bool usable = meant && *meant >= min && *meant <= max;
    return Refused(node,
                   fmt::format("{} is {}", Describe(node),
                               node.quoted ? "quoted text" : "not a plain decimal integer"),
                   allowed,
                   usable ? fmt::format("write {}", *meant) : "write the digits alone, unquoted");
  }
  if (*value < min)
    return Refused(node, fmt::format("{} is too small", *value), allowed,
                   fmt::format("use {} or more", min));
  if (*value > max)
    return Refused(node, fmt::format("{} is too large", *value), allowed,
                   fmt::format("use {} or less", max));
  return {*value, {}};
}

Reading ReadBoolean(const YamlNode& node) {
  if (auto refused = NotScalar(node, "true or false")) return *refused;
  if (!node.quoted && (node.text == "true" || node.text == "false"))
    return {node.text == "true", {}};
  std::optional<bool> meant = MeantBoolean(node.text);
  return Refused(node, fmt::format("{} is not a boolean", Describe(node)), "true or false",
                 meant ? fmt::format("write {}", *meant) : "write true or false, unquoted");
}

Reading ReadText(const YamlNode& node, const std::string& allowed) {
  if (auto refused = NotScalar(node, allowed)) return *refused;
  if (!node.quoted && IsOtherThanText(node.text)) {
    return Refused(node, fmt::format("{} is not text", Describe(node)), allowed,
                   fmt::format("write \"{}\" in quotes if it is meant", Printable(node.text)));
  }
  return {node.text, {}};
}

Reading ReadWord(const YamlNode& node, const std::vector<std::string>& words) {
  std::string allowed = OneOf(words);
  if (auto refused = NotScalar(node, allowed)) return *refused;
  if (std::find(words.begin(), words.end(), node.text) != words.end()) return {node.text, {}};
  std::string nearest = Nearest(node.text, words);
  return Refused(node, fmt::format("{} is not known", Describe(node)), allowed,
                 !nearest.empty()    ? fmt::format("did you mean {}?", nearest)
                 : words.size() == 1 ? "write " + words[0]
                                     : "use one of these");
}

Reading ReadPattern(const YamlNode& node, bool (*fits)(std::string_view),
                    const std::string& allowed, const std::string& next) {
  Reading reading = ReadText(node, allowed);
  if (!reading.mistakes.empty() || !node.is_scalar() || fits(node.text)) return reading;
  return Refused(node, fmt::format("{} is not usable", Describe(node)), allowed, next);
}

Reading ReadList(const YamlNode& node, bool (*fits)(std::string_view), const std::string& allowed) {
  if (node.alias) return {};
  if (!node.is_list()) {
    std::string next = node.is_scalar() ? fmt::format("write [{}]", Describe(node))
                                        : "write a list such as [A, B]";
    return Refused(node, fmt::format("{} is not a list", Describe(node)), allowed, next);
  }
  Reading all{Json::array(), {}};
  std::set<std::string> seen;
  for (const YamlNode& item : node.items) {
    Reading one =
        ReadPattern(item, fits, allowed, "use a backend's name as `ashlar plan` shows it");
    if (one.mistakes.empty() && item.is_scalar() && !seen.insert(item.text).second) {
      one = Refused(item, fmt::format("{} stands twice", Describe(item)), "each name once",
                    "delete one of the two");
    }
    Take(one, fmt::format("[{}]", &item - node.items.data()), all);
    all.value.push_back(std::move(one.value));
  }
  return all;
}

std::optional<MemoryAmount> ParseMemory(std::string_view text) {
  if (text.ends_with('%')) {
    std::optional<int64_t> percent = StrictInteger(text.substr(0, text.size() - 1));
    if (!percent || *percent < 1 || *percent > 100) return std::nullopt;
    return MemoryAmount{.percent = static_cast<int>(*percent), .bytes = std::nullopt};
  }
  if (text.empty() || IsDigit(text.back())) return std::nullopt;
  std::optional<int64_t> bytes = ParseBytes(text);
  if (!bytes || *bytes < 1) return std::nullopt;
  return MemoryAmount{.percent = std::nullopt, .bytes = bytes};
}

Reading ReadMemory(const YamlNode& node, const std::string& allowed) {
  if (auto refused = NotScalar(node, allowed)) return *refused;
  if (ParseMemory(node.text)) return {node.text, {}};
  std::string found = fmt::format("{} is not an amount of memory", Describe(node));
  std::string next = "write for example 80% or 12GiB";
  if (!node.text.empty() && MeantInteger(node.text)) {
    found = fmt::format("{} has no unit", Describe(node));
    next = fmt::format("add a unit: {0}% or {0}MiB", Printable(node.text));
  } else if (node.text.ends_with('%')) {
    found = fmt::format("{} is out of range", Describe(node));
  } else if (std::string meant = MeantMemory(node.text); !meant.empty()) {
    next = fmt::format("write {}", meant);
  }
  return Refused(node, found, allowed, next);
}

Reading ReadFree(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      if (node.written || node.alias) return {};
      return Refused(node, "nothing", "a value, or null", "write null, or leave the key out");
    case YamlNode::Kind::kScalar:
      return ReadFreeScalar(node);
    case YamlNode::Kind::kList:
    case YamlNode::Kind::kMap:
      break;
  }
  Reading all{node.is_map() ? Json::object() : Json::array(), {}};
  for (size_t i = 0; i < node.items.size(); i += node.is_map() ? 2 : 1) {
    const YamlNode& item = node.items[node.is_map() ? i + 1 : i];
    Reading one = ReadFree(item);
    if (node.is_map() && HasControl(node.items[i].text)) {
      one = Refused(node.items[i], "a key with a control character", "printable words",
                    "delete the character");
    }
    if (node.is_map()) {
      Take(one, "." + Printable(node.items[i].text), all);
      Append(all.value, node.items[i].text, std::move(one.value));
    } else {
      Take(one, fmt::format("[{}]", i), all);
      all.value.push_back(std::move(one.value));
    }
  }
  return all;
}

bool IsModelName(std::string_view text) {
  if (text.empty() || text.size() > 128) return false;
  if (!IsAlnum(text.front()) || !IsAlnum(text.back())) return false;
  if (text.find("..") != text.npos || text.find("//") != text.npos) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return IsAlnum(c) || c == '.' || c == '_' || c == '-' || c == '/' || c == ':';
  });
}

bool IsBackendName(std::string_view text) {
  if (text.empty() || text.size() > 64 || !IsUpper(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsUpper(c) || IsDigit(c) || c == '_'; });
}

bool IsPath(std::string_view text) {
  return !text.empty() && text.size() <= 4096 && !HasControl(text) && text.find("://") == text.npos;
}

bool IsBuiltinName(std::string_view text) {
  if (text.empty() || text.size() > 64 || !IsLower(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
}

bool IsHost(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '.' || c == '-' || c == ':'; });
}

}  // namespace ashlar
