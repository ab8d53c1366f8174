// What a scalar's text is under our strict reading, and what somebody meant who wrote it in one of
// YAML 1.1's other ways.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ashlar {

// Decimal digits with an optional minus, no leading zeros. Empty when it is not one or does not
// fit.
std::optional<int64_t> StrictInteger(std::string_view text);

// The integer meant by 1_000, 0x10, 0o17, 012, 1e3, +5 or 16.0.
std::optional<int64_t> MeantInteger(std::string_view text);

// The boolean meant by yes, no, on, off, y, n, True, FALSE, 1 or 0.
std::optional<bool> MeantBoolean(std::string_view text);

// Whether some YAML reader takes this unquoted text for a number, a boolean or null.
bool IsOtherThanText(std::string_view text);

// A number by JSON's grammar.
bool IsJsonNumber(std::string_view text);

}  // namespace ashlar
