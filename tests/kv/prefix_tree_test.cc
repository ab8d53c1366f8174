#include "kv/prefix_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ashlar {
namespace {

using Tokens = std::vector<int32_t>;

// A hash with 16 values.
Sha256Digest FourBits(std::span<const std::byte> bytes) {
  Sha256Digest digest{};
  digest[0] = Sha256(bytes)[0] & std::byte{15};
  return digest;
}

TEST(PrefixTree, NamesEqualPrefixesAlike) {
  PrefixTree tree(1, Sha256);
  PrefixId root = tree.Root("");
  EXPECT_EQ(tree.Root(""), root);
  PrefixId child = tree.Child(root, Tokens{1, 2});
  EXPECT_EQ(tree.Child(root, Tokens{1, 2}), child);
  EXPECT_NE(tree.Child(root, Tokens{2, 1}), child);
  EXPECT_NE(tree.Child(child, Tokens{1, 2}), child);
}

TEST(PrefixTree, SaltsShareNothing) {
  PrefixTree tree(1, Sha256);
  PrefixId plain = tree.Root(""), a = tree.Root("a"), b = tree.Root("b");
  EXPECT_NE(plain, a);
  EXPECT_NE(a, b);
  EXPECT_NE(tree.Child(a, Tokens{1}), tree.Child(b, Tokens{1}));
  // Tokens cannot pose as a salt: 'a' is 97.
  EXPECT_NE(tree.Child(plain, Tokens{97}), a);
  EXPECT_NE(tree.hash(tree.Child(plain, Tokens{97})), tree.hash(a));
}

TEST(PrefixTree, SeedChangesEveryHash) {
  PrefixTree one(1, Sha256), two(2, Sha256);
  EXPECT_NE(one.hash(one.Root("")), two.hash(two.Root("")));
  EXPECT_NE(one.hash(one.Child(one.Root(""), Tokens{5})),
            two.hash(two.Child(two.Root(""), Tokens{5})));
}

TEST(PrefixTree, LivesNoLongerThanItsPins) {
  PrefixTree tree(1, Sha256);
  PrefixId root = tree.Root("s");
  PrefixId a = tree.Child(root, Tokens{1}), b = tree.Child(a, Tokens{2});
  tree.Unpin(root);
  tree.Unpin(a);
  EXPECT_EQ(tree.size(), 3u);  // b holds its ancestors
  tree.Unpin(b);
  EXPECT_EQ(tree.size(), 0u);
}

TEST(PrefixTree, CollidingHashesNeverMixPrefixes) {
  PrefixTree tree(1, FourBits);
  PrefixId root = tree.Root("");
  std::mt19937 random(7);
  std::map<Tokens, PrefixId> names;
  // Few tokens, so that many prefixes differ only in their first block.
  for (int i = 0; i < 2000; ++i) {
    Tokens prefix;
    PrefixId id = root;
    for (int depth = 0; depth < 3; ++depth) {
      int32_t token = static_cast<int32_t>(random() % 6);
      prefix.push_back(token);
      id = tree.Child(id, Tokens{token});
      auto [known, made] = names.emplace(prefix, id);
      ASSERT_EQ(known->second, id);
    }
  }
  std::map<PrefixId, int> uses;
  for (const auto& [prefix, id] : names) EXPECT_EQ(++uses[id], 1);
}

}  // namespace
}  // namespace ashlar
