// Check: an invariant of ours. A failed one is a bug in ashlar and aborts; input from outside never
// reaches one.
#pragma once

#include <source_location>
#include <string_view>

namespace ashlar {

[[noreturn]] void Fail(std::string_view what, std::string_view detail,
                       std::source_location where = std::source_location::current());

inline void Check(bool holds, std::string_view invariant,
                  std::source_location where = std::source_location::current()) {
  if (!holds) Fail(invariant, "", where);
}

}  // namespace ashlar
