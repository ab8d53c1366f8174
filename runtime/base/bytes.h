// Byte amounts as people write them: 512, 64KiB, 12GiB (powers of 1024) or 12GB (powers of 1000).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ashlar {

std::optional<int64_t> ParseBytes(std::string_view text);

// A whole number that is not negative, with one of the units behind it. Empty when it is none, or
// the product does not fit.
struct AmountUnit {
  std::string_view name;
  int64_t factor;
};
std::optional<int64_t> ParseAmount(std::string_view text, std::span<const AmountUnit> units);

// Largest power-of-1024 unit with at most one decimal: 1536 -> "1.5 KiB".
std::string FormatBytes(int64_t bytes);

}  // namespace ashlar
