// The models linked into this binary, as rows that CMake generates from
// runtime/checkpoint/builtin/.
#pragma once

#include <cstddef>
#include <span>

namespace ashlar {

struct BuiltinFile {
  const char* name;
  const std::byte* begin;
  const std::byte* end;
};

struct BuiltinModel {
  const char* name;
  std::span<const BuiltinFile> files;  // sorted by name
};

std::span<const BuiltinModel> BuiltinModels();

}  // namespace ashlar
