// Texts compared with a file of the source tree.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/mapped_file.h"

namespace ashlar::testing_support {

// Compares with the file at `path` in the source tree; a difference leaves the new text in the
// build folder, to be read and copied.
inline void ExpectGolden(const std::string& path, const std::string& text) {
  Result<std::string> golden = ReadTextFile(ASHLAR_SOURCE_DIR "/" + path, 1 << 22);
  if (golden.ok() && *golden == text) return;
  std::filesystem::path fresh = ASHLAR_BUILD_DIR "/golden/" + path;
  std::filesystem::create_directories(fresh.parent_path());
  std::ofstream(fresh, std::ios::binary) << text;
  ADD_FAILURE() << "differs from " << path << "; the new text is " << fresh;
}

}  // namespace ashlar::testing_support
