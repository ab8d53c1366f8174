#include "plan/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/mapped_file.h"
#include "plan/layout.h"
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
  if (!IsJsonNumber(node.text)) return node.text;
  Json number = Json::parse(node.text, nullptr, false);
  return number.is_discarded() ? Json(node.text) : number;  // one that no double holds is text
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
constexpr std::array<Member, 3> kMembers = {{
    {"hash", Json::value_t::string},
    {"hashBlockSize", Json::value_t::number_integer},
    {"kvGroups", Json::value_t::array},
}};
constexpr std::array<Member, 3> kPageMembers = {{
    {"headSlots", Json::value_t::number_integer},
    {"states", Json::value_t::number_integer},
    {"contentBytes", Json::value_t::number_integer},
}};
constexpr std::array<Member, 1> kAttentionMembers = {{{"backend", Json::value_t::string}}};

template <size_t kCount>
std::string Missing(const Json& value, const std::array<Member, kCount>& members) {
  if (!value.is_object()) return "object";
  for (const Member& member : members) {
    auto at = value.find(member.name);
    bool integer = member.type == Json::value_t::number_integer;
    if (at == value.end() || (integer ? !at->is_number_integer() : at->type() != member.type))
      return member.name;
  }
  return "";
}

bool IsBlock(const Json& tokens) {
  int64_t size = tokens.get<int64_t>();
  return size > 0 && size <= INT32_MAX;
}

bool IsPage(const Json& page) {
  const int64_t extents[] = {page["headSlots"].get<int64_t>(), page["states"].get<int64_t>(),
                             page["contentBytes"].get<int64_t>()};
  return std::all_of(std::begin(extents), std::end(extents), [](int64_t n) { return n > 0; }) &&
         CheckedProduct(extents).has_value();
}

// The first member that is not there, not of its type or of no size that a plan has; "" none.
std::string MissingOfGroup(const Json& group) {
  std::string missing = Missing(group, kGroupMembers);
  if (missing.empty()) missing = Missing(group["page"], kPageMembers);
  for (const char* block : {"blockSize", "kernelBlockSize"}) {
    if (missing.empty() && !IsBlock(group[block])) missing = block;
  }
  if (missing.empty() && !IsPage(group["page"])) missing = "page";
  for (size_t i = 0; missing.empty() && i < group["attention"].size(); ++i)
    missing = Missing(group["attention"][i], kAttentionMembers);
  return missing;
}

std::string MissingOfPlan(const Json& plan) {
  std::string missing = Missing(plan, kMembers);
  if (missing.empty() && plan.contains("layout") && !plan["layout"].is_string()) return "layout";
  for (size_t i = 0; missing.empty() && i < plan["kvGroups"].size(); ++i)
    missing = MissingOfGroup(plan["kvGroups"][i]);
  return missing;
}

bool IsStrides(const Json& strides) {
  return strides.is_array() && strides.size() == std::tuple_size_v<KvStrides> &&
         std::all_of(strides.begin(), strides.end(),
                     [](const Json& stride) { return stride.is_number_integer(); });
}

// What is known of a plan that names no layout: whether every page is one run.
Problems CheckPages(const Json& plan, const std::string& name) {
  std::vector<StatedPages> pages;
  for (const Json& group : plan["kvGroups"]) {
    auto strides = group.find("strides");
    if (strides == group.end() || !IsStrides(*strides)) {
      return {{name, "no layout, and no usable strides", "a layout, or the strides of each group",
               "state the layout"}};
    }
    const Json& page = group["page"];
    pages.push_back(
        {group["name"].get<std::string>(),
         {static_cast<int64_t>(group["layers"].size()), 1, page["headSlots"].get<int64_t>(),
          page["states"].get<int64_t>(), page["contentBytes"].get<int64_t>()},
         strides->get<KvStrides>()});
  }
  return CheckUnstatedLayout(pages, name);
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
  if (std::string missing = MissingOfPlan(plan); !missing.empty()) {
    return Problem{name, fmt::format("no usable {}", missing),
                   "a plan as `ashlar plan -o json` prints it",
                   "write the file with `ashlar plan -f FILE -o json`"};
  }
  if (!plan.contains("layout")) {
    if (Problems split = CheckPages(plan, name); !split.empty()) return split;
    plan["layout"] = "unstated";
  }
  return plan;
}

Result<Json> ReadPlanDocument(const std::string& path) {
  Result<std::string> text = ReadTextFile(path, kMaxBytes);
  if (!text) return text.problems();
  return ParsePlanDocument(*text, path);
}

}  // namespace ashlar
