#include <fmt/format.h>

#include <iostream>

#include "commands/commands.h"
#include "spec/spec.h"

namespace ashlar {

int ValidateCommand(const std::string& file) {
  Result<Spec> spec = LoadSpecFile(file);
  if (!spec) return Report(spec.problems());
  std::cout << fmt::format("{}: valid, digest {}", file, spec->digest) << std::endl;
  return 0;
}

}  // namespace ashlar
