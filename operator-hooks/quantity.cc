#include "operator-hooks/quantity.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/checked.h"

namespace ashlar::hooks {
namespace {

constexpr std::array<std::pair<std::string_view, int64_t>, 9> kUnits = {{
    {"", 1},
    {"Ki", int64_t{1} << 10},
    {"Mi", int64_t{1} << 20},
    {"Gi", int64_t{1} << 30},
    {"Ti", int64_t{1} << 40},
    {"k", 1'000},
    {"M", 1'000'000},
    {"G", 1'000'000'000},
    {"T", 1'000'000'000'000},
}};

}  // namespace

std::optional<int64_t> ParseQuantity(std::string_view text) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (unit == "m") return number / 1000;
  for (const auto& [name, factor] : kUnits) {
    if (name == unit) return CheckedMul(number, factor);
  }
  return std::nullopt;
}

}  // namespace ashlar::hooks
