#include <fmt/format.h>

#include <iostream>

#include "commands/commands.h"
#include "source.h"
#include "spec/spec.h"

namespace ashlar {

int ValidateCommand(const std::string& file) {
  Result<Spec> spec = LoadSpecFile(file);
  if (!spec) return Report(spec.problems());
  if (!spec->source.builtin.empty()) {  // this binary alone decides whether there is such a model
    Result<ModelSource> source = OpenSource(*spec, /*plan_only=*/false);
    if (!source) return Report(source.problems());
  }
  std::cout << fmt::format("{}: valid, digest {}", file, spec->digest) << std::endl;
  return 0;
}

}  // namespace ashlar
