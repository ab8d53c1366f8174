#include "plan/yaml.h"

#include <algorithm>
#include <cctype>

namespace ashlar {
namespace {

// Words that some YAML reader takes for something else than text.
constexpr std::string_view kReserved[] = {"true", "false", "yes", "no", "on",
                                          "off",  "null",  "y",   "n",  "nan"};

bool IsPlain(std::string_view text) {
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text.front()))) return false;
  std::string lower;
  for (char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.' &&
        c != '/')
      return false;
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return std::find(std::begin(kReserved), std::end(kReserved), lower) == std::end(kReserved);
}

std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>()))
    return value.get<std::string>();
  return DumpJson(value);  // a JSON scalar is a YAML scalar
}

bool Inline(const Json& value) {
  if (value.is_array())
    return std::none_of(value.begin(), value.end(),
                        [](const Json& item) { return item.is_structured(); });
  return !value.is_object() || value.empty();
}

std::string Flow(const Json& value) {
  if (!value.is_array()) return value.is_object() ? "{}" : Scalar(value);
  std::string text = "[";
  for (const Json& item : value) {
    if (text.size() > 1) text += ", ";
    text += Scalar(item);
  }
  return text + "]";
}

void Write(const Json& value, const std::string& indent, std::string& out);

// A value after "key:" or "-"; `first` members of a list item stand on its own line.
void WriteMembers(const Json& object, const std::string& indent, bool first, std::string& out) {
  for (const auto& [key, member] : object.items()) {
    if (!first) out += indent;
    first = false;
    out += Scalar(Json(key)) + ":";
    if (Inline(member)) {
      out += " " + Flow(member) + "\n";
    } else {
      out += "\n";
      Write(member, member.is_array() ? indent : indent + "  ", out);
    }
  }
}

void Write(const Json& value, const std::string& indent, std::string& out) {
  if (Inline(value)) {
    out += indent + Flow(value) + "\n";
  } else if (value.is_object()) {
    WriteMembers(value, indent, false, out);
  } else {
    for (const Json& item : value) {
      out += indent + "- ";
      if (Inline(item)) {
        out += Flow(item) + "\n";
      } else if (item.is_object()) {
        WriteMembers(item, indent + "  ", true, out);
      } else {
        out += "\n";
        Write(item, indent + "  ", out);
      }
    }
  }
}

}  // namespace

std::string YamlOf(const Json& value) {
  std::string out;
  Write(value, "", out);
  return out;
}

}  // namespace ashlar
