#include <fmt/format.h>

#include "spec/spec.h"

namespace ashlar {

std::string Origins::Place(const std::string& field) const {
  auto known = where_.find(field);
  const std::string& where = known == where_.end() ? document_ : known->second;
  if (prefix_.empty()) {
    if (field.empty()) return where;
    return where.empty() ? field : fmt::format("{} {}", where, field);
  }
  std::string path = field.empty() ? prefix_ : fmt::format("{}.{}", prefix_, field);
  return where.empty() ? path : fmt::format("{} ({})", path, where);
}

}  // namespace ashlar
