#include "plan/document.h"

#include <fmt/format.h>

#include <array>

#include "base/mapped_file.h"
#include "spec/scalar.h"
#include "spec/yaml_tree.h"

namespace ashlar {
namespace {

constexpr int64_t kMaxBytes = 4 << 20;

Json JsonOf(const YamlNode& node) {
  if (node.is_map()) {
    Json object = Json::object();
    for (size_t i = 0; i + 1 < node.items.size(); i += 2)
      object[node.items[i].text] = JsonOf(node.items[i + 1]);
    return object;
  }
  if (node.is_list()) {
    Json array = Json::array();
    for (const YamlNode& item : node.items) array.push_back(JsonOf(item));
    return array;
  }
  if (node.is_null()) return nullptr;
  if (node.quoted) return node.text;
  if (node.text == "true" || node.text == "false") return node.text == "true";
  if (IsJsonNumber(node.text)) return Json::parse(node.text, nullptr, false);
  return node.text;
}

struct Member {
  const char* name;
  Json::value_t type;
};
constexpr std::array<Member, 9> kGroupMembers = {{
    {"name", Json::value_t::string},
    {"kind", Json::value_t::string},
    {"window", Json::value_t::number_integer},
    {"dtype", Json::value_t::string},
    {"layers", Json::value_t::array},
    {"blockSize", Json::value_t::number_integer},
    {"kernelBlockSize", Json::value_t::number_integer},
    {"page", Json::value_t::object},
    {"attention", Json::value_t::array},
}};
constexpr std::array<Member, 4> kMembers = {{
    {"hash", Json::value_t::string},
    {"layout", Json::value_t::string},
    {"hashBlockSize", Json::value_t::number_integer},
    {"kvGroups", Json::value_t::array},
}};

template <size_t kCount>
std::string Missing(const Json& value, const std::array<Member, kCount>& members) {
  if (!value.is_object()) return "an object";
  for (const Member& member : members) {
    auto at = value.find(member.name);
    bool integer = member.type == Json::value_t::number_integer;
    if (at == value.end() || (integer ? !at->is_number_integer() : at->type() != member.type))
      return member.name;
  }
  return "";
}

}  // namespace

Result<Json> ParsePlanDocument(std::string_view text, const std::string& name) {
  Json plan;
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{') {
    Result<Json> parsed = ParseJson(text, name);
    if (!parsed) return parsed.problems();
    plan = std::move(*parsed);
  } else {
    YamlTree tree = ParseYaml(text, name, {.nodes = 100'000, .depth = 32});
    if (!tree.problems.empty()) return tree.problems;
    plan = JsonOf(tree.root);
  }
  if (plan.is_object() && plan.contains("plan")) plan = Json(plan["plan"]);  // all of /status
  std::string missing = Missing(plan, kMembers);
  if (missing.empty()) {
    for (const Json& group : plan["kvGroups"]) {
      if (missing.empty()) missing = Missing(group, kGroupMembers);
    }
  }
  if (missing.empty()) return plan;
  return Problem{name, fmt::format("no usable {}", missing),
                 "a plan as `ashlar plan -o json` prints it",
                 "write the file with `ashlar plan -f FILE -o json`"};
}

Result<Json> ReadPlanDocument(const std::string& path) {
  Result<std::string> text = ReadTextFile(path, kMaxBytes);
  if (!text) return text.problems();
  return ParsePlanDocument(*text, path);
}

}  // namespace ashlar
