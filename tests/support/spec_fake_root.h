// A tree that stands in for /sys, /proc and /dev. It lies in memory where there is room: some hold
// thousands of files.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"

namespace ashlar {

class FakeRoot {
 public:
  FakeRoot() {
    std::string name = "/dev/shm/ashlar_root_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      name = std::filesystem::temp_directory_path() / "ashlar_root_XXXXXX";
      Check(mkdtemp(name.data()) != nullptr, "a temporary directory can be made");
    }
    path_ = name;
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }
  ~FakeRoot() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  const std::string& path() const { return path_; }

  void Write(const std::string& file, std::string_view text) const {
    std::filesystem::path whole = path_ + file;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::binary) << text;
  }
  void MakeDirectory(const std::string& directory) const {
    std::filesystem::create_directories(path_ + directory);
  }
  void Remove(const std::string& file) const { std::filesystem::remove_all(path_ + file); }
  // Nobody but the superuser may open the file any more.
  void Forbid(const std::string& file) const {
    std::filesystem::permissions(path_ + file, std::filesystem::perms(0));
  }
  // Opening it fails with ELOOP, for everybody.
  void MakeLoop(const std::string& file) const {
    std::filesystem::path whole = path_ + file;
    std::filesystem::create_directories(whole.parent_path());
    std::filesystem::create_symlink(whole.filename(), whole);
  }

 private:
  std::string path_;
};

// Runs its scope as an ordinary user, so that file modes count in a container's root shell too.
class OrdinaryUser {
 public:
  OrdinaryUser() : user_(geteuid()) {
    if (user_ == 0) Check(seteuid(65534) == 0, "root may become an ordinary user");
  }
  ~OrdinaryUser() {
    if (user_ == 0) Check(seteuid(0) == 0, "and come back");
  }

 private:
  uid_t user_;
};

}  // namespace ashlar
