#include "base/bytes.h"

#include <fmt/format.h>

#include <charconv>

#include "base/checked.h"

namespace ashlar {
namespace {

constexpr AmountUnit kUnits[] = {
    {"", 1},
    {"B", 1},
    {"KiB", int64_t{1} << 10},
    {"MiB", int64_t{1} << 20},
    {"GiB", int64_t{1} << 30},
    {"TiB", int64_t{1} << 40},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
};

}  // namespace

std::optional<int64_t> ParseBytes(std::string_view text) { return ParseAmount(text, kUnits); }

std::optional<int64_t> ParseAmount(std::string_view text, std::span<const AmountUnit> units) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  for (const AmountUnit& unit : units) {
    if (unit.name == suffix) return CheckedMul(number, unit.factor);
  }
  return std::nullopt;
}

std::string FormatBytes(int64_t bytes) {
  constexpr std::string_view kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= 1024 && unit + 1 < std::size(kNames)) {
    amount /= 1024;
    ++unit;
  }
  if (amount == static_cast<int64_t>(amount))
    return fmt::format("{} {}", static_cast<int64_t>(amount), kNames[unit]);
  return fmt::format("{:.1f} {}", amount, kNames[unit]);
}

}  // namespace ashlar
