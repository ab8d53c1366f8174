#include "probe/root_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

namespace ashlar {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr size_t kListNames = 4096;

std::vector<std::string_view> Split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t start = text.find_first_not_of(separators);
    if (start == text.npos) return parts;
    text.remove_prefix(start);
    size_t end = std::min(text.find_first_of(separators), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// Closes the descriptor at the end of its scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

std::optional<std::string> RootFiles::Read(const std::string& path) const {
  // O_NONBLOCK: a pipe put in a file's place must not hang the probe.
  Descriptor file{open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat info {};
  if (file.fd < 0 || fstat(file.fd, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::string text;
  char buffer[16384];
  while (text.size() < kReadBytes) {
    ssize_t got = read(file.fd, buffer, std::min(sizeof buffer, kReadBytes - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

std::optional<std::string> RootFiles::ReadWord(const std::string& path) const {
  std::optional<std::string> text = Read(path);
  if (!text) return std::nullopt;
  return std::string(Trim(*text));
}

std::optional<int64_t> RootFiles::ReadNumber(const std::string& path) const {
  std::optional<std::string> text = ReadWord(path);
  return text ? ParseNumber(*text) : std::nullopt;
}

bool RootFiles::Exists(const std::string& path) const {
  struct stat info {};
  return lstat((root_ + path).c_str(), &info) == 0;
}

std::vector<std::string> RootFiles::List(const std::string& path) const {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir((root_ + path).c_str()), closedir);
  std::vector<std::string> names;
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory.get())) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    names.push_back(std::move(name));
    if (names.size() == kListNames) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

int RootFiles::OpenError(const std::string& path) const {
  Descriptor file{open((root_ + path).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  return file.fd >= 0 ? 0 : errno;
}

std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0)
    return std::nullopt;
  return value;
}

std::vector<std::string_view> Lines(std::string_view text) { return Split(text, "\n"); }
std::vector<std::string_view> Words(std::string_view text) { return Split(text, " \t\n"); }

std::string_view Trim(std::string_view text) {
  size_t start = text.find_first_not_of(" \t\r\n");
  if (start == text.npos) return {};
  return text.substr(start, text.find_last_not_of(" \t\r\n") - start + 1);
}

std::string PlainText(std::string_view text) {
  std::string plain(text.substr(0, 96));
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return plain;
}

}  // namespace ashlar
