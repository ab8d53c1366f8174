// No environment variable changes what the runtime does. Those that somebody may expect to are
// named here.
#pragma once

#include <string>
#include <vector>

#include "base/problem.h"

namespace ashlar {

struct EnvironmentReport {
  Problems problems;                  // a start is refused: ASHLAR_* names a field of the spec
  std::vector<std::string> warnings;  // said once each; the variable changes nothing
};

// `environment` holds "NAME=value" entries. Values are never repeated: they may be secrets.
EnvironmentReport CheckEnvironment(const std::vector<std::string>& environment);

}  // namespace ashlar
