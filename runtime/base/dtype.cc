#include "base/dtype.h"

#include "base/check.h"
#include "base/checked.h"

namespace ashlar {

const DTypeInfo& Info(DType type) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.type == type) return info;
  }
  Fail("every DType has a row", "");
}

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.type;
  }
  return std::nullopt;
}

std::optional<int64_t> StorageBytes(DType type, int64_t count) {
  const DTypeInfo& info = Info(type);
  if (count < 0 || count % info.elements != 0) return std::nullopt;
  return CheckedMul<int64_t>(count / info.elements, info.bytes);
}

}  // namespace ashlar
