#include "import/command.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ashlar {
namespace {

std::string_view BaseName(std::string_view word) { return word.substr(word.rfind('/') + 1); }

bool IsPython(std::string_view word) { return BaseName(word).starts_with("python"); }

bool IsAssignment(std::string_view word) {
  size_t equals = word.find('=');
  return equals != word.npos && equals > 0 &&
         std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

}  // namespace

std::optional<std::vector<std::string>> ServerArguments(const std::vector<std::string>& words) {
  size_t i = 0;
  while (i < words.size() && (IsAssignment(words[i]) || words[i] == "exec" || words[i] == "env"))
    ++i;
  auto rest = [&](size_t from) {
    return std::vector<std::string>(words.begin() + static_cast<std::ptrdiff_t>(from), words.end());
  };
  if (i + 1 < words.size() && BaseName(words[i]) == "vllm" && words[i + 1] == "serve")
    return rest(i + 2);
  if (i + 2 < words.size() && IsPython(words[i]) && words[i + 1] == "-m" &&
      words[i + 2].starts_with("vllm."))
    return rest(i + 3);
  return std::nullopt;
}

}  // namespace ashlar
