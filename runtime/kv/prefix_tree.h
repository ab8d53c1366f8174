// Names for token prefixes: equal ids mean equal salt and equal tokens from the start, exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/sha256.h"

namespace ashlar {

using PrefixId = int32_t;
inline constexpr PrefixId kNoPrefix = -1;

using PrefixHash = std::function<Sha256Digest(std::span<const std::byte>)>;

// A tree of blocks of tokens, one root a salt. A node is found by a chained hash,
//   root = H("ashlar root" seed "salt" salt),  child = H("ashlar block" parent tokens),
// and then compared: parent node and tokens must be equal, so even a hash that collides never
// gives one prefix the name of another. Owned by the engine thread.
//
// A node lives while it is pinned or has children; then its id may name another prefix.
class PrefixTree {
 public:
  PrefixTree(uint64_t seed, PrefixHash hash);

  // The node for this salt or for these tokens after `parent`, made when there is none. Pinned once
  // for the caller.
  PrefixId Root(std::string_view salt);
  PrefixId Child(PrefixId parent, std::span<const int32_t> tokens);

  void Pin(PrefixId id);
  void Unpin(PrefixId id);

  const Sha256Digest& hash(PrefixId id) const { return nodes_[id].hash; }
  size_t size() const { return by_hash_.size(); }  // living nodes

 private:
  struct Node {
    PrefixId parent = kNoPrefix;
    int pins = 0;  // its children count
    Sha256Digest hash{};
    std::vector<int32_t> tokens;  // of a root: the bytes of the salt
  };
  PrefixId FindOrMake(PrefixId parent, std::span<const int32_t> tokens, const Sha256Digest& hash);

  uint64_t seed_;
  PrefixHash hash_;
  std::vector<Node> nodes_;
  std::vector<PrefixId> unused_;
  std::unordered_multimap<uint64_t, PrefixId> by_hash_;  // first 8 bytes of the hash
  std::vector<std::byte> scratch_;
};

}  // namespace ashlar
