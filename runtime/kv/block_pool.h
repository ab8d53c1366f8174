// Blocks of one KV group: who holds which, which are free, and which free ones still hold a
// reusable prefix.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/sha256.h"

namespace ashlar {

using BlockId = int32_t;
inline constexpr BlockId kNullBlock = 0;  // never given out; stands where a block is not needed

// What a full block holds: its tokens, and the hash of everything before them. The tokens are
// compared on a hit, so a colliding hash can never hand out another prompt's block.
struct BlockKey {
  Sha256Digest hash{};
  std::vector<int32_t> tokens;
};

// Owned by the engine thread. Invariants:
//   1. every block but the null block is either held (references > 0) or on the free list;
//   2. a block with a key is found by it, held or free, until it is given out again;
//   3. free blocks leave in least-recently-freed order, those without a key first.
class BlockPool {
 public:
  explicit BlockPool(int64_t blocks);

  int64_t total() const;   // usable blocks, the null block not counted
  int64_t free() const;    // may be given out, cached ones included
  int64_t cached() const;  // free and holding a reusable prefix
  int64_t evictions() const;

  // Takes a block, dropping the prefix it held; empty when none is free.
  std::optional<BlockId> Take();
  // The block that holds this prefix, now referenced once more; empty on a miss.
  std::optional<BlockId> Reuse(const BlockKey& key);
  // Whether Reuse would hit; changes nothing.
  bool Contains(const BlockKey& key) const;
  // Makes a held, full block findable. The first block mapped to a key wins.
  void Publish(BlockId block, BlockKey key);
  // Drops one reference. The caller releases a sequence's blocks last to first, so the deepest is
  // evicted first.
  void Release(BlockId block);
  // Forgets every key (a fault made the contents doubtful).
  void ForgetAll();

 private:
  struct Entry {
    int references = 0;
    std::optional<BlockKey> key;
    BlockId previous = kNullBlock, next = kNullBlock;  // free list
  };
  void Unlink(BlockId block);
  void Link(BlockId block, bool front);
  void Forget(BlockId block);

  std::vector<Entry> entries_;
  BlockId head_ = kNullBlock, tail_ = kNullBlock;
  int64_t free_ = 0, cached_ = 0, evictions_ = 0;
  std::unordered_multimap<uint64_t, BlockId> by_hash_;  // first 8 bytes of the hash
};

// Hash chain over full blocks of `block_tokens`: hash(i) = SHA-256(tag, parent, tokens), with the
// salt in the first block under a tag of its own, and a process-wide random seed at the root.
class PrefixHasher {
 public:
  explicit PrefixHasher(uint64_t seed) : seed_(seed) {}
  Sha256Digest Root(std::string_view salt) const;
  static Sha256Digest Next(const Sha256Digest& parent, std::span<const int32_t> tokens);

 private:
  uint64_t seed_;
};

}  // namespace ashlar
