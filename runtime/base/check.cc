#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace ashlar {

void Fail(std::string_view what, std::string_view detail, std::source_location where) {
  std::fprintf(stderr, "%s:%u: check failed: %.*s%s%.*s\n", where.file_name(), where.line(),
               static_cast<int>(what.size()), what.data(), detail.empty() ? "" : ": ",
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace ashlar
