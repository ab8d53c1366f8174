#include "kv/block_pool.h"

#include <limits>
#include <utility>

#include "base/check.h"

namespace ashlar {

BlockPool::BlockPool(int64_t blocks, Forgotten forgotten) : forgotten_(std::move(forgotten)) {
  Check(blocks >= 1 && blocks <= std::numeric_limits<BlockId>::max(),
        "a pool has a null block and block ids fit 32 bits");
  entries_.resize(static_cast<size_t>(blocks));
  for (BlockId block = 1; block < static_cast<BlockId>(blocks); ++block) Link(block, false);
}

std::optional<BlockId> BlockPool::Take() {
  BlockId block = entries_[kNullBlock].next;
  if (block == kNullBlock) return std::nullopt;
  Unlink(block);
  Entry& entry = entries_[block];
  Check(entry.references == 0, "a free block has no holder");
  if (entry.prefix != kNoPrefix) {
    --cached_;
    ++evictions_;
    Drop(block);
  }
  entry.references = 1;
  return block;
}

BlockId BlockPool::Find(PrefixId prefix) const {
  auto found = by_prefix_.find(prefix);
  return found == by_prefix_.end() ? kNullBlock : found->second;
}

void BlockPool::Hold(BlockId block) {
  Check(block > kNullBlock && block <= total(), "only blocks of the pool are held");
  Entry& entry = entries_[block];
  if (entry.references == 0) {
    Check(entry.prefix != kNoPrefix, "a free block is held again only for the prefix in it");
    Unlink(block);
    --cached_;
  }
  ++entry.references;
}

bool BlockPool::Publish(BlockId block, PrefixId prefix) {
  Check(block > kNullBlock && block <= total(), "only blocks of the pool are published");
  Entry& entry = entries_[block];
  Check(entry.references > 0, "only a held block is published");
  Check(entry.prefix == kNoPrefix, "a block holds one prefix");
  if (!by_prefix_.emplace(prefix, block).second) return false;
  entry.prefix = prefix;
  return true;
}

void BlockPool::Release(BlockId block) {
  Check(block > kNullBlock && block <= total(), "only blocks of the pool are released");
  Entry& entry = entries_[block];
  Check(entry.references > 0, "a block is released by its holder");
  if (--entry.references > 0) return;
  bool cached = entry.prefix != kNoPrefix;
  if (cached) ++cached_;
  Link(block, !cached);
}

void BlockPool::Forget(PrefixId prefix) {
  BlockId block = Find(prefix);
  if (block == kNullBlock) return;
  Drop(block);
  if (entries_[block].references > 0) return;
  --cached_;
  Unlink(block);
  Link(block, true);
}

void BlockPool::ForgetAll() {
  while (!by_prefix_.empty()) Forget(by_prefix_.begin()->first);
}

void BlockPool::Unlink(BlockId block) {
  Entry& entry = entries_[block];
  entries_[entry.previous].next = entry.next;
  entries_[entry.next].previous = entry.previous;
  --free_;
}

void BlockPool::Link(BlockId block, bool front) {
  Entry& entry = entries_[block];
  entry.previous = front ? kNullBlock : entries_[kNullBlock].previous;
  entry.next = front ? entries_[kNullBlock].next : kNullBlock;
  entries_[entry.previous].next = block;
  entries_[entry.next].previous = block;
  ++free_;
}

void BlockPool::Drop(BlockId block) {
  PrefixId prefix = std::exchange(entries_[block].prefix, kNoPrefix);
  by_prefix_.erase(prefix);
  if (forgotten_) forgotten_(prefix);
}

void BlockPool::CheckInvariants() const {
  int64_t listed = 0, cached = 0;
  bool seen_cached = false;
  for (BlockId block = entries_[kNullBlock].next; block != kNullBlock;
       block = entries_[block].next) {
    const Entry& entry = entries_[block];
    Check(entry.references == 0, "1: a listed block is not held");
    Check(entries_[entry.next].previous == block, "1: the list is whole");
    Check(++listed <= total(), "1: no block is listed twice");
    bool has_prefix = entry.prefix != kNoPrefix;
    Check(has_prefix || !seen_cached, "3: blocks without a prefix leave first");
    seen_cached = has_prefix;
    cached += has_prefix;
  }
  int64_t held = 0;
  size_t published = 0;
  for (BlockId block = 1; block <= total(); ++block) {
    const Entry& entry = entries_[block];
    held += entry.references > 0;
    if (entry.prefix == kNoPrefix) continue;
    ++published;
    Check(Find(entry.prefix) == block, "2: a published block is found");
  }
  Check(published == by_prefix_.size(), "2: only published blocks are found");
  Check(held + listed == total() && listed == free_ && cached == cached_, "1: counts agree");
}

}  // namespace ashlar
