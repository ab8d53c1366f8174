// The block pools of all KV groups, and the prefixes in them that another request may use.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "kv/prefix_tree.h"

namespace ashlar {

// The prefixes of one sequence, block by block, for each block size in use. Pins what it names
// until PrefixCache::End.
struct PrefixPath {
  struct Chain {
    PrefixId root = kNoPrefix;
    std::vector<PrefixId> nodes;  // [i] is the prefix that block i completes
  };
  std::vector<Chain> chains;
};

// How much of a prompt the cache holds, in tokens from its start.
struct PrefixMatch {
  int64_t tokens = 0;             // need not be computed: a multiple of every group's block
  std::vector<int64_t> by_group;  // what each group has by itself; never less
};

// Owned by the engine thread. Only full blocks are shared. A prefix is usable when every group has
// what it needs: full attention all of its blocks, a sliding window the last
// ceil((window - 1) / block) of them.
class PrefixCache {
 public:
  struct Options {
    bool enabled = true;  // false: nothing is found, nothing is kept
    uint64_t seed = 0;
    PrefixHash hash = Sha256;
  };
  PrefixCache(std::vector<KvGroupShape> groups, Options options);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  int groups() const { return static_cast<int>(shapes_.size()); }
  const KvGroupShape& shape(int group) const { return shapes_[group]; }
  BlockPool& pool(int group) { return pools_[group]; }
  const BlockPool& pool(int group) const { return pools_[group]; }
  // Empty tables, one a group.
  std::vector<BlockTable> MakeTables();

  PrefixPath Begin(std::string_view salt);
  // Names the full blocks of `tokens`, which begin with those that the path already names.
  void Extend(PrefixPath& path, std::span<const int32_t> tokens);
  void End(PrefixPath& path);

  // At most `limit` tokens.
  PrefixMatch Match(const PrefixPath& path, int64_t limit) const;
  // Puts the blocks of a match into empty tables, one more reference each.
  void Adopt(const PrefixPath& path, int64_t tokens, std::vector<BlockTable>& tables);
  // Makes the blocks that `computed` tokens have filled findable.
  void Publish(const PrefixPath& path, int64_t computed, std::vector<BlockTable>& tables);
  // Nothing on the path is found any more.
  void Forget(const PrefixPath& path);
  void ForgetAll();

  size_t prefixes() const;  // living nodes of all trees

 private:
  int64_t NeededFrom(int group, int64_t block_count) const;
  int64_t MatchAlone(const PrefixPath& path, int group, int64_t limit) const;

  std::vector<KvGroupShape> shapes_;
  Options options_;
  std::vector<int> tree_of_;      // by group
  std::vector<int> tree_blocks_;  // block tokens of each tree
  std::vector<std::unique_ptr<PrefixTree>> trees_;
  std::vector<BlockPool> pools_;
  int64_t common_tokens_ = 1;  // least common multiple of the group blocks
};

}  // namespace ashlar
