// Which blocks hold the tokens of one sequence, in one KV group.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_pool.h"

namespace ashlar {

// Block geometry of one KV group, from the plan.
struct KvGroupShape {
  int block_tokens = 0;         // manager block
  int kernel_block_tokens = 0;  // divides it
  int window = 0;               // tokens, 0: all are kept
  int64_t blocks = 0;           // in the pool, the null block counted

  // Most blocks that `tokens` tokens hold at once when at most `in_flight` of them are computed in
  // one step. A window may start inside a block: one more.
  int64_t BlocksFor(int64_t tokens, int64_t in_flight) const;
};

// Position p stands in entry p / block_tokens. Entries behind the window are the null block. The
// owner calls Clear before the table goes away. Owned by the engine thread.
class BlockTable {
 public:
  BlockTable(BlockPool& pool, const KvGroupShape& shape)
      : pool_(&pool), shape_(shape), split_(shape.block_tokens / shape.kernel_block_tokens) {}

  std::span<const BlockId> blocks() const { return blocks_; }
  const KvGroupShape& shape() const { return shape_; }

  // Tokens that the blocks of the table can hold.
  int64_t capacity() const { return static_cast<int64_t>(blocks_.size()) * shape_.block_tokens; }
  // The most tokens that Cover can reach with the blocks now free.
  int64_t Reach() const { return capacity() + pool_->free() * shape_.block_tokens; }
  // Takes blocks until `tokens` tokens have a place; false, with nothing taken, when too few are
  // free.
  bool Cover(int64_t tokens);

  // Appends a block that the pool already counts as held by this table, or the null block.
  void Adopt(BlockId block) { blocks_.push_back(block); }

  // Releases the blocks that no query at position `next` or later can see.
  void FreeBehind(int64_t next);
  // Releases all, last to first.
  void Clear();

  // Where the KV of this position is written: kernel block * kernel block tokens + offset.
  int64_t Slot(int position) const {
    const auto at = static_cast<uint32_t>(position);
    const auto block = static_cast<uint32_t>(shape_.block_tokens);
    return int64_t{blocks_[at / block]} * block + at % block;
  }
  // Kernel blocks b*r .. b*r+r-1 of each manager block b from entry `from` on; `out` is where entry
  // 0 stands and has room for kernel_blocks().
  int64_t kernel_blocks() const { return static_cast<int64_t>(blocks_.size()) * split_; }
  void CopyKernelBlocks(int32_t* out, size_t from = 0) const;

  // Leading entries that the prefix cache has already seen.
  int64_t published = 0;

 private:
  BlockPool* pool_;
  KvGroupShape shape_;
  int split_;  // kernel blocks of a manager block
  std::vector<BlockId> blocks_;
  size_t first_held_ = 0;
};

}  // namespace ashlar
