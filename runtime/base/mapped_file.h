// A read-only view of a whole file, or of bytes linked into the binary. Immutable after creation;
// any thread may read.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace ashlar {

class MappedFile {
 public:
  // Maps the file; an empty file gives an empty view. Refuses directories and devices. Keeps the
  // descriptor open so that a file replaced by rename stays the one that was checked.
  static Result<MappedFile> Open(const std::string& path);

  // Bytes that outlive the process's use of them; `name` stands for the path in messages.
  static MappedFile Builtin(std::string name, std::span<const std::byte> bytes);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Size of the file now; differs from bytes().size() when somebody rewrote it in place, and
  // reading is then unsafe.
  int64_t CurrentSize() const;

  // Tells the kernel that these bytes are read once, front to back, soon.
  void Prefetch(size_t offset, size_t size) const;

 private:
  MappedFile() = default;

  std::string path_;
  std::span<const std::byte> bytes_;
  int fd_ = -1;  // -1 for built-in bytes
};

// The whole file as text, refusing more than `limit` bytes.
Result<std::string> ReadTextFile(const std::string& path, int64_t limit);

}  // namespace ashlar
