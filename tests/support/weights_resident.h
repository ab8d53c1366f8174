// How much of a mapped file this process has in memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace ashlar::testing_support {

inline int64_t ResidentBytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(maps, line)) {
    if (line.find(path) != std::string::npos) inside = true;
    int64_t kilobytes = 0;
    if (inside && std::sscanf(line.c_str(), "Rss: %ld kB", &kilobytes) == 1)
      return kilobytes * 1024;
  }
  return 0;
}

}  // namespace ashlar::testing_support
