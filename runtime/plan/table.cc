#include "plan/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace ashlar {

std::string Table(const std::vector<TableRow>& rows) {
  std::vector<size_t> width;
  for (const TableRow& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const TableRow& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:{}}", row[i], width[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace ashlar
