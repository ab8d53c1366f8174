#include "kv/prefix_cache.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace ashlar {

PrefixCache::PrefixCache(std::vector<KvGroupShape> groups, Options options)
    : shapes_(std::move(groups)), options_(std::move(options)) {
  for (const KvGroupShape& shape : shapes_) {
    Check(shape.block_tokens > 0 && shape.kernel_block_tokens > 0 &&
              shape.block_tokens % shape.kernel_block_tokens == 0,
          "a kernel block divides the manager block");
    auto same = std::find(tree_blocks_.begin(), tree_blocks_.end(), shape.block_tokens);
    tree_of_.push_back(static_cast<int>(same - tree_blocks_.begin()));
    if (same == tree_blocks_.end()) {
      tree_blocks_.push_back(shape.block_tokens);
      trees_.push_back(std::make_unique<PrefixTree>(options_.seed, options_.hash));
    }
    PrefixTree* tree = trees_[tree_of_.back()].get();
    pools_.emplace_back(shape.blocks, [tree](PrefixId prefix) { tree->Unpin(prefix); });
    common_tokens_ = std::lcm(common_tokens_, int64_t{shape.block_tokens});
  }
}

std::vector<BlockTable> PrefixCache::MakeTables() {
  std::vector<BlockTable> tables;
  tables.reserve(shapes_.size());
  for (int g = 0; g < groups(); ++g) tables.emplace_back(pools_[g], shapes_[g]);
  return tables;
}

PrefixPath PrefixCache::Begin(std::string_view salt) {
  PrefixPath path;
  if (!options_.enabled) return path;
  for (auto& tree : trees_) path.chains.push_back({tree->Root(salt), {}});
  return path;
}

void PrefixCache::Extend(PrefixPath& path, std::span<const int32_t> tokens) {
  for (size_t t = 0; t < path.chains.size(); ++t) {
    PrefixPath::Chain& chain = path.chains[t];
    size_t block = static_cast<size_t>(tree_blocks_[t]);
    while ((chain.nodes.size() + 1) * block <= tokens.size()) {
      PrefixId parent = chain.nodes.empty() ? chain.root : chain.nodes.back();
      chain.nodes.push_back(
          trees_[t]->Child(parent, tokens.subspan(chain.nodes.size() * block, block)));
    }
  }
}

void PrefixCache::End(PrefixPath& path) {
  for (size_t t = 0; t < path.chains.size(); ++t) {
    PrefixPath::Chain& chain = path.chains[t];
    for (auto node = chain.nodes.rbegin(); node != chain.nodes.rend(); ++node) {
      trees_[t]->Unpin(*node);
    }
    trees_[t]->Unpin(chain.root);
  }
  path.chains.clear();
}

// First of `block_count` leading blocks that the next query reads.
int64_t PrefixCache::NeededFrom(int group, int64_t block_count) const {
  const KvGroupShape& shape = shapes_[group];
  if (shape.window == 0) return 0;
  return std::max<int64_t>(0, block_count - CeilDiv<int64_t>(shape.window - 1, shape.block_tokens));
}

// The longest prefix of at most `limit` tokens, in blocks of the group, that it has by itself.
int64_t PrefixCache::MatchAlone(const PrefixPath& path, int group, int64_t limit) const {
  const auto& nodes = path.chains[tree_of_[group]].nodes;
  const int64_t block = shapes_[group].block_tokens;
  auto has = [&](int64_t i) { return pools_[group].Find(nodes[i]) != kNullBlock; };
  int64_t end = std::min(static_cast<int64_t>(nodes.size()), limit / block);
  if (shapes_[group].window == 0) {  // left to right, to the first miss
    int64_t hit = 0;
    while (hit < end && has(hit)) ++hit;
    return hit * block;
  }
  // Right to left: a miss at block j rules out every end behind j whose window reaches it, which
  // is all of them down to j itself.
  int64_t from = NeededFrom(group, end);
  for (int64_t j = end - 1; j >= from; --j) {
    if (has(j)) continue;
    end = j;
    from = NeededFrom(group, end);
  }
  return end * block;
}

PrefixMatch PrefixCache::Match(const PrefixPath& path, int64_t limit) const {
  PrefixMatch match;
  match.by_group.resize(shapes_.size());
  if (path.chains.empty() || limit <= 0) return match;
  int64_t tokens = limit;
  for (int g = 0; g < groups(); ++g) {
    match.by_group[g] = MatchAlone(path, g, limit);
    tokens = std::min(tokens, match.by_group[g]);
  }
  tokens -= tokens % common_tokens_;
  // Full attention has every shorter prefix too; the window before a shorter end may lack a block,
  // and what one group then gives up may break another: repeat until all agree.
  for (bool settled = false; !settled && tokens > 0;) {
    settled = true;
    for (int g = 0; g < groups(); ++g) {
      if (shapes_[g].window == 0) continue;
      int64_t alone = MatchAlone(path, g, tokens);
      if (alone == tokens) continue;
      tokens = alone - alone % common_tokens_;
      settled = false;
    }
  }
  match.tokens = tokens;
  return match;
}

void PrefixCache::Adopt(const PrefixPath& path, int64_t tokens, std::vector<BlockTable>& tables) {
  Check(tokens % common_tokens_ == 0, "a match ends at a block of every group");
  for (int g = 0; g < groups(); ++g) {
    Check(tables[g].blocks().empty(), "a match is put into empty tables");
    int64_t count = tokens / shapes_[g].block_tokens, from = NeededFrom(g, count);
    for (int64_t i = 0; i < count; ++i) {
      BlockId block = kNullBlock;
      if (i >= from) {
        block = pools_[g].Find(path.chains[tree_of_[g]].nodes[i]);
        Check(block != kNullBlock, "a match is adopted before any block is taken");
        pools_[g].Hold(block);
      }
      tables[g].Adopt(block);
    }
    tables[g].published = count;
  }
}

void PrefixCache::Publish(const PrefixPath& path, int64_t computed,
                          std::vector<BlockTable>& tables) {
  if (path.chains.empty()) return;
  for (int g = 0; g < groups(); ++g) {
    const auto& nodes = path.chains[tree_of_[g]].nodes;
    const int64_t block_tokens = shapes_[g].block_tokens;
    for (int64_t& i = tables[g].published; (i + 1) * block_tokens <= computed; ++i) {
      BlockId block = tables[g].blocks()[i];
      if (block == kNullBlock) continue;
      if (pools_[g].Publish(block, nodes[i])) trees_[tree_of_[g]]->Pin(nodes[i]);
    }
  }
}

void PrefixCache::Forget(const PrefixPath& path) {
  if (path.chains.empty()) return;
  for (int g = 0; g < groups(); ++g) {
    for (PrefixId node : path.chains[tree_of_[g]].nodes) pools_[g].Forget(node);
  }
}

void PrefixCache::ForgetAll() {
  for (BlockPool& pool : pools_) pool.ForgetAll();
}

size_t PrefixCache::prefixes() const {
  size_t count = 0;
  for (const auto& tree : trees_) count += tree->size();
  return count;
}

}  // namespace ashlar
