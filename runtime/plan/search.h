// Rows, manager block and kernel blocks chosen together, where choosing them one after the other
// fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/align.h"
#include "plan/block_size.h"

namespace ashlar {

// One KV group: for each of its attention groups the rows that may carry it out, best first. A
// forced row stands alone.
struct JointGroup {
  std::string name;
  std::vector<std::vector<const AttentionRow*>> choices;
};

struct JointRequest {
  std::vector<JointGroup> groups;
  int tokens = 0;                   // what the user states, which stays; 0: free
  std::optional<StateNeed> states;  // of a model with recurrent layers; its kernel_block is unused
};

struct JointChoice {
  int requested = 0;  // before states made it grow
  int tokens = 0;
  std::vector<std::vector<const AttentionRow*>> rows;  // by KV group and attention group
};

struct JointResult {
  std::optional<JointChoice> choice;
  // Without a choice: groups that no block size suits, of which each is needed for that, and what
  // their rows accept.
  std::vector<std::string> core;
};

// The smallest block that some rows of every group take (not below the default if that can be),
// then the rows of least rank. Groups meet only in the block size, so each is solved alone.
JointResult SearchJointly(const JointRequest& request);

}  // namespace ashlar
