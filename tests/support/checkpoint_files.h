// A folder for one test, gone after it, and the bytes of small models to put there.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace ashlar::testing_support {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = testing::TempDir() + "ashlar_XXXXXX";
    path_ = mkdtemp(pattern.data()) == nullptr ? "" : pattern;
    EXPECT_FALSE(path_.empty()) << "no temporary folder";
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string Write(std::string_view name, std::string_view bytes) const {
    std::string file = path_ + "/" + std::string(name);
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

 private:
  std::string path_;
};

}  // namespace ashlar::testing_support
