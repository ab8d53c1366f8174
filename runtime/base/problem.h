// A mistake that somebody outside can make and mend, in four parts. Every refusal of the runtime is
// a list of these.
#pragma once

#include <string>
#include <vector>

namespace ashlar {

// Printed as "place: found: allowed; next", leaving out what is empty. Example:
//   model.yaml:12:15 kv.blockSize: 24 is not usable: CPU_PAGED needs a multiple of 16; use 16 or 32
struct Problem {
  std::string
      place;  // file:line:column and field path, tensor and byte range, or request parameter
  std::string found;    // what is there, quoted from the input
  std::string allowed;  // what would be accepted
  std::string next;     // what to do about it

  std::string Text() const;
  bool operator==(const Problem&) const = default;
};

using Problems = std::vector<Problem>;

// One problem a line, in the order found.
std::string Text(const Problems& problems);

}  // namespace ashlar
