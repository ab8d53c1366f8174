// Reads little-endian values front to back and never past the end. The first failure is kept and
// every later read fails too.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/layout.h"

namespace ashlar {

class GgufCursor {
 public:
  GgufCursor(const std::string& path, std::span<const std::byte> file)
      : path_(path),
        file_size_(file.size()),
        bytes_(file.first(std::min<size_t>(file.size(), kMaxHeaderBytes))) {}

  uint64_t at() const { return at_; }
  uint64_t remaining() const { return bytes_.size() - at_; }
  const std::string& path() const { return path_; }
  bool failed() const { return failed_; }
  const Problem& problem() const { return problem_; }

  // What is being read, for messages: "metadata general.name".
  void Enter(std::string what) {
    what_ = std::move(what);
    start_ = at_;
  }

  template <class T>
  T Take() {
    static_assert(std::endian::native == std::endian::little);
    T value{};
    if (!Need(sizeof value)) return value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  // A 64-bit length and that many bytes; a view of the file.
  std::string_view TakeString(uint64_t limit) {
    uint64_t length = Take<uint64_t>();
    if (failed_) return {};
    if (length > limit) {
      Refuse(fmt::format("a string of {} bytes", length), fmt::format("at most {} bytes", limit));
      return {};
    }
    if (!Need(length)) return {};
    std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return text;
  }

  // Whether `count` values of at least `each` bytes can still follow.
  bool CanHold(uint64_t count, uint64_t each) const { return count <= remaining() / each; }

  void Refuse(std::string found, std::string allowed, std::string_view next = kDamaged) {
    if (failed_) return;
    failed_ = true;
    problem_ = {fmt::format("{} {} bytes {}..{}", path_, what_, start_, at_), std::move(found),
                std::move(allowed), std::string(next)};
  }

 private:
  bool Need(uint64_t size) {
    if (failed_) return false;
    if (size <= remaining()) return true;
    if (bytes_.size() < file_size_) {
      Refuse("the header goes on", fmt::format("a header of at most {} bytes", kMaxHeaderBytes));
    } else {
      Refuse(fmt::format("the file has {} bytes", file_size_),
             fmt::format("at least {} bytes expected", at_ + size), kFetchAgain);
    }
    return false;
  }

  const std::string& path_;
  uint64_t file_size_;
  std::span<const std::byte> bytes_;
  uint64_t at_ = 0, start_ = 0;
  std::string what_ = "header";
  bool failed_ = false;
  Problem problem_;
};

}  // namespace ashlar
