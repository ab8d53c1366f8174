// Reads /sys, /proc and /dev under a prefix, so that a captured tree stands in for a machine.
// Nothing here fails: what cannot be read is absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

class RootFiles {
 public:
  explicit RootFiles(std::string root) : root_(std::move(root)) {}

  // The first MiB of a regular file; empty when it is none or cannot be read.
  std::optional<std::string> Read(const std::string& path) const;
  // The same without white space at the ends.
  std::optional<std::string> ReadWord(const std::string& path) const;
  // A decimal number that stands there alone.
  std::optional<int64_t> ReadNumber(const std::string& path) const;

  bool Exists(const std::string& path) const;
  // Names in a directory, sorted; at most 4096.
  std::vector<std::string> List(const std::string& path) const;
  // 0 when the file can be opened for reading and writing, else errno. The file is left as it is.
  int OpenError(const std::string& path) const;

 private:
  std::string root_;
};

// Decimal digits alone that fit; empty otherwise.
std::optional<int64_t> ParseNumber(std::string_view text);

// Lines and words without empty ones.
std::vector<std::string_view> Lines(std::string_view text);
std::vector<std::string_view> Words(std::string_view text);
std::string_view Trim(std::string_view text);

// Text of others made fit for messages and JSON: what is no printable ASCII becomes '?', cut at 96.
std::string PlainText(std::string_view text);

}  // namespace ashlar
