// Columns of text.
#pragma once

#include <string>
#include <vector>

namespace ashlar {

using TableRow = std::vector<std::string>;

// Columns as wide as their widest cell, two spaces apart and before the first; a row may be short.
std::string Table(const std::vector<TableRow>& rows);

}  // namespace ashlar
