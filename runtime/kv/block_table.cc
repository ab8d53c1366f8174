#include "kv/block_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace ashlar {

int64_t KvGroupShape::BlocksFor(int64_t tokens, int64_t in_flight) const {
  int64_t all = CeilDiv<int64_t>(tokens, block_tokens);
  if (window == 0) return all;
  int64_t seen = std::min(window - 1 + in_flight, tokens);
  return std::min(all, CeilDiv<int64_t>(seen, block_tokens) + 1);
}

bool BlockTable::Cover(int64_t tokens) {
  if (tokens <= capacity()) return true;
  if (tokens > Reach()) return false;
  while (capacity() < tokens) blocks_.push_back(*pool_->Take());
  return true;
}

void BlockTable::FreeBehind(int64_t next) {
  if (shape_.window == 0) return;
  int64_t first_seen = next - shape_.window + 1;
  while (first_held_ < blocks_.size() &&
         static_cast<int64_t>(first_held_ + 1) * shape_.block_tokens <= first_seen) {
    if (blocks_[first_held_] != kNullBlock) pool_->Release(blocks_[first_held_]);
    blocks_[first_held_++] = kNullBlock;
  }
}

void BlockTable::Clear() {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    if (*block != kNullBlock) pool_->Release(*block);
  }
  blocks_.clear();
  first_held_ = 0;
  published = 0;
}

void BlockTable::CopyKernelBlocks(int32_t* out, size_t from) const {
  for (size_t b = from; b < blocks_.size(); ++b) {
    for (int part = 0; part < split_; ++part) out[b * split_ + part] = blocks_[b] * split_ + part;
  }
}

}  // namespace ashlar
