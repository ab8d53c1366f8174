#include "base/problem.h"

namespace ashlar {

std::string Problem::Text() const {
  std::string text = place;
  auto add = [&text](const char* separator, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += separator;
    text += part;
  };
  add(": ", found);
  add(": ", allowed);
  add("; ", next);
  return text;
}

std::string Text(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += problem.Text();
  }
  return text;
}

}  // namespace ashlar
