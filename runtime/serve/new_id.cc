#include "serve/new_id.h"

#include <fmt/format.h>

#include <random>

namespace ashlar {

std::string NewId(std::string_view prefix) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  uint64_t high = random();
  return fmt::format("{}-{:016x}{:08x}", prefix, high, static_cast<uint32_t>(random()));
}

}  // namespace ashlar
