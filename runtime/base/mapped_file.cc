#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace ashlar {
namespace {

Problem CannotOpen(const std::string& path, int error) {
  std::string next = error == EACCES ? "give the user that runs ashlar read access"
                                     : "check the path and the mount";
  return {path, fmt::format("cannot be read: {}", std::generic_category().message(error)),
          "a readable file", next};
}

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  MappedFile file;
  file.path_ = path;
  file.fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.fd_ < 0) return CannotOpen(path, errno);
  struct stat info {};
  if (fstat(file.fd_, &info) != 0) return CannotOpen(path, errno);
  if (!S_ISREG(info.st_mode))
    return Problem{path, "is not a regular file", "a regular file", "name the file itself"};
  if (info.st_size == 0) return file;
  size_t size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd_, 0);
  if (data == MAP_FAILED) return CannotOpen(path, errno);
  file.bytes_ = {static_cast<const std::byte*>(data), size};
  return file;
}

MappedFile MappedFile::Builtin(std::string name, std::span<const std::byte> bytes) {
  MappedFile file;
  file.path_ = std::move(name);
  file.bytes_ = bytes;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      fd_(std::exchange(other.fd_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

MappedFile::~MappedFile() {
  if (fd_ < 0) return;
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  close(fd_);
}

int64_t MappedFile::CurrentSize() const {
  struct stat info {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) return static_cast<int64_t>(bytes_.size());
  return info.st_size;
}

void MappedFile::Prefetch(size_t offset, size_t size) const {
  if (fd_ >= 0)
    posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(size), POSIX_FADV_WILLNEED);
}

Result<std::string> ReadTextFile(const std::string& path, int64_t limit) {
  Result<MappedFile> file = MappedFile::Open(path);
  if (!file) return file.problems();
  int64_t size = static_cast<int64_t>(file->bytes().size());
  if (size > limit) {
    return Problem{path, fmt::format("{} bytes", size), fmt::format("at most {} bytes", limit),
                   "shorten it"};
  }
  return std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
}

}  // namespace ashlar
