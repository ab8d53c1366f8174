// Whether two pools can hand KV blocks to each other as they are, and what to set, or to copy, so
// that they can.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "device/row.h"

namespace ashlar {

struct Exchange {
  enum class Verdict {
    kSame,    // blocks pass as they are
    kRows,    // so they do, but other rows read them there, so that the hashes differ
    kChange,  // they do when both pools are planned with `block_tokens` and `layout`
    kRepack,  // each block is copied as `repacks` say
    kNever,   // the caches hold different things
  };
  Verdict verdict = Verdict::kNever;
  int block_tokens = 0;                // kChange: kv.blockSize of both
  KvLayout layout = KvLayout::kLBHNC;  // kChange: kv.layout of both
  // kRows and kNever: one a line, "full_attention kv heads: 8 here, 4 there".
  std::vector<std::string> differences;

  // One group's copy, in the smallest unit of whole blocks on both sides.
  struct Repack {
    std::string group;
    int64_t unit_tokens = 0;  // least common multiple of the two blocks
    int64_t blocks_here = 0, blocks_there = 0;
    int64_t runs = 0, run_bytes = 0;  // a unit of one layer, contiguous on both sides
  };
  std::vector<Repack> repacks;
};

// `here` and `there` are plan documents (ReadPlanDocument); `rows` says what each plan's backends
// accept.
Exchange MatchPlans(const Json& here, const Json& there, const std::vector<AttentionRow>& rows);

}  // namespace ashlar
