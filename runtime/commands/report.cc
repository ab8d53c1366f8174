#include <iostream>

#include "commands/commands.h"

namespace ashlar {

int Report(const Problems& problems) {
  std::cerr << Text(problems) << std::endl;
  return kRefused;
}

}  // namespace ashlar
