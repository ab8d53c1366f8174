#include "base/problem.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

TEST(Problem, ReadsAsOneLine) {
  Problem problem{"model.yaml:12:15 kv.blockSize", "24 is not usable",
                  "CPU_PAGED needs a multiple of 16", "use 16 or 32"};
  EXPECT_EQ(problem.Text(),
            "model.yaml:12:15 kv.blockSize: 24 is not usable: CPU_PAGED needs a multiple of 16; "
            "use 16 or 32");
}

TEST(Problem, LeavesOutEmptyParts) {
  EXPECT_EQ((Problem{"", "found", "", "next"}).Text(), "found; next");
}

}  // namespace
}  // namespace ashlar
