// What holds of every refusal of the text library, whatever the bytes were.
#pragma once

#include "base/check.h"
#include "base/problem.h"

namespace ashlar {

inline void CheckRefusal(const Problems& problems) {
  Check(problems.size() == 1, "one cause, one problem");
  const Problem& problem = problems[0];
  Check(!problem.place.empty() && !problem.found.empty() && !problem.allowed.empty() &&
            !problem.next.empty(),
        "a problem has four parts");
  Check(problem.Text().size() < 8000, "a message stays short");
}

}  // namespace ashlar
