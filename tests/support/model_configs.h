// The geometry of public models in tests/model/configs.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"

namespace ashlar::testing_support {

inline const std::filesystem::path& ModelConfigFolder() {
  static const std::filesystem::path folder = ASHLAR_SOURCE_DIR "/tests/model/configs";
  return folder;
}

// "llama-3.1-8b" and so on, sorted.
inline std::vector<std::string> ModelConfigNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ModelConfigFolder())) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline Json PublicConfig(const std::string& name) {
  std::string text = ReadTextFile(ModelConfigFolder() / (name + ".json"), 1 << 20).value();
  return ParseJson(text, name).value();
}

}  // namespace ashlar::testing_support
