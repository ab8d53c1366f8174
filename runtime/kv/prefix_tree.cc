#include "kv/prefix_tree.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace ashlar {
namespace {

void Append(std::vector<std::byte>& to, const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  to.insert(to.end(), from, from + bytes);
}

// Every part opens with its tag and length, so that no part can pose as another.
void AppendPart(std::vector<std::byte>& to, std::string_view tag, const void* data, size_t bytes) {
  Append(to, tag.data(), tag.size());
  uint64_t length = bytes;
  Append(to, &length, sizeof length);
  if (bytes > 0) Append(to, data, bytes);
}

uint64_t Short(const Sha256Digest& hash) {
  uint64_t key;
  std::memcpy(&key, hash.data(), sizeof key);
  return key;
}

}  // namespace

PrefixTree::PrefixTree(uint64_t seed, PrefixHash hash) : seed_(seed), hash_(std::move(hash)) {
  Check(static_cast<bool>(hash_), "a prefix tree has a hash");
}

PrefixId PrefixTree::Root(std::string_view salt) {
  scratch_.clear();
  AppendPart(scratch_, "ashlar root", &seed_, sizeof seed_);
  AppendPart(scratch_, "salt", salt.data(), salt.size());
  std::vector<int32_t> letters(salt.begin(), salt.end());
  return FindOrMake(kNoPrefix, letters, hash_(scratch_));
}

PrefixId PrefixTree::Child(PrefixId parent, std::span<const int32_t> tokens) {
  scratch_.clear();
  AppendPart(scratch_, "ashlar block", nodes_[parent].hash.data(), sizeof(Sha256Digest));
  AppendPart(scratch_, "tokens", tokens.data(), tokens.size_bytes());
  return FindOrMake(parent, tokens, hash_(scratch_));
}

PrefixId PrefixTree::FindOrMake(PrefixId parent, std::span<const int32_t> tokens,
                                const Sha256Digest& hash) {
  auto [first, last] = by_hash_.equal_range(Short(hash));
  for (auto it = first; it != last; ++it) {
    Node& node = nodes_[it->second];
    if (node.parent != parent || !std::ranges::equal(node.tokens, tokens)) continue;
    ++node.pins;
    return it->second;
  }
  if (unused_.empty()) {
    unused_.push_back(static_cast<PrefixId>(nodes_.size()));
    nodes_.emplace_back();
  }
  PrefixId id = unused_.back();
  unused_.pop_back();
  Node& node = nodes_[id];
  node.parent = parent;
  node.pins = 1;
  node.hash = hash;
  node.tokens.assign(tokens.begin(), tokens.end());
  if (parent != kNoPrefix) ++nodes_[parent].pins;
  by_hash_.emplace(Short(hash), id);
  return id;
}

void PrefixTree::Pin(PrefixId id) {
  Check(nodes_[id].pins > 0, "only a living node is pinned");
  ++nodes_[id].pins;
}

void PrefixTree::Unpin(PrefixId id) {
  // A node without pins lets go of its parent, and so on up: a loop, since chains are long.
  while (id != kNoPrefix) {
    Node& node = nodes_[id];
    Check(node.pins > 0, "a node is unpinned as often as it was pinned");
    if (--node.pins > 0) return;
    auto [first, last] = by_hash_.equal_range(Short(node.hash));
    auto here = std::find_if(first, last, [&](const auto& entry) { return entry.second == id; });
    Check(here != last, "a living node is found by its hash");
    by_hash_.erase(here);
    unused_.push_back(id);
    id = std::exchange(node.parent, kNoPrefix);
  }
}

}  // namespace ashlar
