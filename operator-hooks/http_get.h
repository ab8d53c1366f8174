// One GET of one pod, within a deadline.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace ashlar::hooks {

// The body of a 200 of `path` at a numeric address. At most 1 MiB, and `milliseconds` in all.
Result<std::string> HttpGet(const std::string& address, int port, const std::string& path,
                            int milliseconds);

}  // namespace ashlar::hooks
