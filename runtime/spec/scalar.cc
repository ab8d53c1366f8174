#include "spec/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace ashlar {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

struct Boolean {
  std::string_view word;
  bool value;
};
constexpr std::array<Boolean, 8> kBooleans = {{{"true", true},
                                               {"false", false},
                                               {"yes", true},
                                               {"no", false},
                                               {"on", true},
                                               {"off", false},
                                               {"y", true},
                                               {"n", false}}};

std::optional<int64_t> Digits(std::string_view text, int base) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Sign and underscores, which YAML 1.1 allows in any number, taken off.
std::string Bare(std::string_view text) {
  std::string bare;
  for (char c : text) {
    if (c != '_') bare += c;
  }
  if (bare.starts_with('+')) bare.erase(0, 1);
  return bare;
}

std::optional<double> Real(const std::string& bare) {
  if (bare.empty() || !std::all_of(bare.begin(), bare.end(), [](char c) {
        return IsDigit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
      })) {
    return std::nullopt;
  }
  double value = 0;
  auto [end, error] = std::from_chars(bare.data(), bare.data() + bare.size(), value);
  if (end != bare.data() + bare.size() || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc() ? value : HUGE_VAL;
}

}  // namespace

std::optional<int64_t> StrictInteger(std::string_view text) {
  std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  if (!std::all_of(digits.begin(), digits.end(), IsDigit)) return std::nullopt;
  return Digits(text, 10);
}

std::optional<int64_t> MeantInteger(std::string_view text) {
  std::string bare = Bare(text);
  std::string lower = Lower(bare);
  if (lower.starts_with("0x")) return Digits(std::string_view(lower).substr(2), 16);
  if (lower.starts_with("0o")) return Digits(std::string_view(lower).substr(2), 8);
  if (std::optional<int64_t> value = Digits(bare, 10)) return value;
  std::optional<double> real = Real(bare);
  if (real && *real == std::floor(*real) && std::abs(*real) < 1e15)
    return static_cast<int64_t>(*real);
  return std::nullopt;
}

std::optional<bool> MeantBoolean(std::string_view text) {
  if (text == "1" || text == "0") return text == "1";
  std::string lower = Lower(text);
  for (const Boolean& boolean : kBooleans) {
    if (boolean.word == lower) return boolean.value;
  }
  return std::nullopt;
}

bool IsOtherThanText(std::string_view text) {
  if (text.empty()) return true;
  char first = text[0];
  if (!IsDigit(first) && first != '+' && first != '-' && first != '.' && first != '~') {
    std::string lower = text.size() <= 5 ? Lower(text) : "";
    if (lower == "null") return true;
    return std::any_of(kBooleans.begin(), kBooleans.end(),
                       [&](const Boolean& boolean) { return boolean.word == lower; });
  }
  std::string lower = Lower(Bare(text));
  if (lower == "~" || lower == ".inf" || lower == "-.inf" || lower == ".nan") return true;
  return MeantInteger(text).has_value() || Real(lower).has_value();
}

bool IsJsonNumber(std::string_view text) {
  size_t i = text.starts_with('-') ? 1 : 0;
  auto digits = [&] {
    size_t start = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    return i - start;
  };
  size_t first = i;
  size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[first] == '0')) return false;
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

}  // namespace ashlar
