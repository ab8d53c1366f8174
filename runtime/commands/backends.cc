// docs/backends.md, written from the rows and ranks inside this binary.
#include <fmt/format.h>

#include <iostream>

#include "commands/commands.h"
#include "plan/rank.h"
#include "probe/platform.h"

namespace ashlar {
namespace {

template <class T, class ToName>
std::string List(const std::vector<T>& values, ToName name, const char* none) {
  std::vector<std::string> names;
  for (const T& value : values) names.emplace_back(name(value));
  return names.empty() ? none : fmt::format("{}", fmt::join(names, ", "));
}

std::string Types(const std::vector<DType>& types) {
  return List(
      types, [](DType type) { return Info(type).name; }, "any");
}

std::string Heads(const AttentionRow& row) {
  if (!row.head_sizes.empty()) {
    return List(
        row.head_sizes, [](int size) { return std::to_string(size); }, "");
  }
  return row.head_multiple > 1 ? fmt::format("a multiple of {}", row.head_multiple) : "any";
}

std::string Blocks(const AttentionRow& row) {
  std::string text = row.kernel_blocks.empty() ? "any" : Text(row.kernel_blocks);
  if (!row.manager_blocks.empty()) text += "; whole: " + Text(row.manager_blocks);
  if (row.preferred_block > 0) text += fmt::format("; prefers {}", row.preferred_block);
  return text;
}

std::string Features(const AttentionRow& row) {
  std::vector<std::string> features;
  auto add = [&](bool has, const char* name) {
    if (has) features.push_back(name);
  };
  add(row.window, "window");
  add(row.sinks, "sinks");
  add(row.batch_invariant, "batch invariant");
  add(row.kv_connector, "KV connector");
  add(row.non_causal, "non-causal");
  add(row.sparse, "sparse");
  return features.empty() ? "-" : fmt::format("{}", fmt::join(features, ", "));
}

std::string Bound(CapabilityUnit unit, uint32_t value) {
  return unit == CapabilityUnit::kCuda ? fmt::format("{}.{}", value / 10, value % 10)
                                       : fmt::format("{}", value);
}

std::string Devices(const AttentionRow& row) {
  std::string text;
  if (row.capability_min > 0 && row.capability_unit == CapabilityUnit::kCuda) {
    text = row.capability_min == row.capability_max
               ? "capability " + Bound(row.capability_unit, row.capability_min)
               : "capability " + Bound(row.capability_unit, row.capability_min) + " and newer";
  }
  if (!row.built_for.empty())
    text += (text.empty() ? "" : "; ") +
            List(
                row.built_for, [](const std::string& name) { return name; }, "");
  return text.empty() ? "any" : text;
}

std::string Row(const AttentionRow& row) {
  return fmt::format(
      "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", row.name,
      List(
          row.kinds, [](KvKind kind) { return fmt::format("`{}`", Name(kind)); }, "any"),
      Types(row.dtypes), Types(row.kv_dtypes), Heads(row), Blocks(row),
      List(
          row.layouts, [](KvLayout layout) { return Name(layout); }, "any"),
      Features(row), Devices(row), Name(row.verification));
}

std::string Condition(const RankRule& rule) {
  std::string text;
  for (int kind = 0; kind <= static_cast<int>(KvKind::kMamba); ++kind) {
    if (rule.kinds & KindBit(static_cast<KvKind>(kind)))
      text += fmt::format("{}`{}`", text.empty() ? "" : ", ", Name(static_cast<KvKind>(kind)));
  }
  if (rule.capability_min > 0)
    text += fmt::format("{}capability {}", text.empty() ? "" : ", ",
                        Bound(CapabilityUnit::kCuda, rule.capability_min));
  return text.empty() ? "everything else" : text;
}

constexpr char kIntroduction[] =
    R"(# Attention backends

Written by `ashlar backends` from the rows inside the binary; a test compares the two.

A row is what a kernel can do, as data. `tested`: it has run on such a device. `compile-verified`: it was compiled for it and
its logic has run elsewhere; the self-test on the device itself decides readiness. `planned`: `ashlar plan` shows it and `ashlar serve`
refuses it. Kernel blocks are tokens; "whole" is a rule for the block itself, which is then not split.
)";

}  // namespace

int BackendsCommand() {
  std::string text = kIntroduction;
  for (const char* platform : {"cuda", "hip", "cpu", "reference"}) {
    text += fmt::format("\n## {}\n\n", platform);
    text +=
        "| row | kinds | q and out | KV | head sizes | blocks | layouts | features | devices | "
        "status |\n|---|---|---|---|---|---|---|---|---|---|\n";
    for (const AttentionRow& row : KnownRows()) {
      if (row.platform == platform) text += Row(row);
    }
    text += "\nTried in this order:\n\n";
    for (const RankRule& rule : kRankRules) {
      if (rule.platform != platform) continue;
      std::vector<std::string> rows;
      for (std::string_view row : rule.rows) {
        if (!row.empty()) rows.push_back(fmt::format("`{}`", row));
      }
      text += fmt::format("* {}: {}\n", Condition(rule), fmt::join(rows, ", "));
    }
  }
  std::cout << text << std::flush;
  return 0;
}

}  // namespace ashlar
