// Blocks of one KV group: who holds which, which are free, and which free ones still hold a
// reusable prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kv/prefix_tree.h"

namespace ashlar {

using BlockId = int32_t;
inline constexpr BlockId kNullBlock = 0;  // never given out; stands where a block is not needed

// Owned by the engine thread. Invariants:
//   1. every block but the null block is either held (references > 0) or on the free list, once;
//   2. a published block is found by its prefix, held or free, until it is forgotten or given out
//      again, and no two blocks are found by one prefix;
//   3. free blocks without a prefix leave first; the others in least-recently-freed order.
class BlockPool {
 public:
  // `forgotten` is told each prefix that stops being found here.
  using Forgotten = std::function<void(PrefixId)>;

  // `blocks` counts the null block.
  explicit BlockPool(int64_t blocks, Forgotten forgotten = {});

  int64_t total() const { return static_cast<int64_t>(entries_.size()) - 1; }
  int64_t free() const { return free_; }      // may be given out, cached ones included
  int64_t cached() const { return cached_; }  // free and holding a reusable prefix
  int64_t evictions() const { return evictions_; }

  // Takes a block with one reference, dropping the prefix it held; empty when none is free.
  std::optional<BlockId> Take();
  // The block that holds this prefix; kNullBlock on a miss. Changes nothing.
  BlockId Find(PrefixId prefix) const;
  // One more reference to a held or cached block.
  void Hold(BlockId block);
  // Makes a held, full block findable. The first block published under a prefix stays; false when
  // there was one.
  bool Publish(BlockId block, PrefixId prefix);
  // Drops one reference. The caller releases a sequence's blocks last to first, so that the deepest
  // is evicted first.
  void Release(BlockId block);
  // The prefix is no longer found (its contents are doubtful); nothing when it was not.
  void Forget(PrefixId prefix);
  void ForgetAll();

  // Walks everything; for tests.
  void CheckInvariants() const;

 private:
  struct Entry {
    int references = 0;
    PrefixId prefix = kNoPrefix;
    BlockId previous = kNullBlock, next = kNullBlock;  // free list
  };
  void Unlink(BlockId block);
  void Link(BlockId block, bool front);
  void Drop(BlockId block);

  std::vector<Entry> entries_;  // [0] is both ends of the free list
  int64_t free_ = 0, cached_ = 0, evictions_ = 0;
  std::unordered_map<PrefixId, BlockId> by_prefix_;
  Forgotten forgotten_;
};

}  // namespace ashlar
