#include "kv/block_table.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

TEST(BlockTable, TakesBlocksOnlyWhenAllAreThere) {
  BlockPool pool(4);
  BlockTable table(pool, {16, 16, 0, 4});
  EXPECT_TRUE(table.Cover(17));
  EXPECT_EQ(table.blocks().size(), 2u);
  EXPECT_EQ(table.Reach(), 48);
  EXPECT_FALSE(table.Cover(49));
  EXPECT_EQ(pool.free(), 1);
  EXPECT_TRUE(table.Cover(48));
  table.Clear();
  EXPECT_EQ(pool.free(), 3);
}

TEST(BlockTable, FreesBehindTheWindowAndNothingTheNextQuerySees) {
  BlockPool pool(20);
  for (int window : {1, 2, 4, 5, 9}) {
    BlockTable table(pool, {4, 4, window, 20});
    ASSERT_TRUE(table.Cover(32));
    for (int next = 1; next <= 32; ++next) {
      table.FreeBehind(next);
      for (int block = 0; block < 8; ++block) {
        bool visible = block * 4 + 3 > next - window;
        EXPECT_EQ(table.blocks()[block] != kNullBlock, visible)
            << "window " << window << " next " << next << " block " << block;
      }
    }
    table.Clear();
    EXPECT_EQ(pool.free(), 19);
  }
}

TEST(BlockTable, SplitsManagerBlocksIntoKernelBlocks) {
  BlockPool pool(4);
  BlockTable table(pool, {64, 16, 0, 4});
  table.Adopt(kNullBlock);
  ASSERT_TRUE(table.Cover(128));
  int32_t block = table.blocks()[1];
  std::vector<int32_t> kernel(static_cast<size_t>(table.kernel_blocks()));
  table.CopyKernelBlocks(kernel.data());
  EXPECT_EQ(kernel, (std::vector<int32_t>{0, 1, 2, 3, 4 * block, 4 * block + 1, 4 * block + 2,
                                          4 * block + 3}));
  // Position 64 + 37: kernel block 2 of the manager block, offset 5.
  EXPECT_EQ(table.Slot(64 + 37), int64_t{4 * block + 2} * 16 + 5);
  table.Clear();
}

// selection-and-block-sizing figures: window 1024, 256 tokens in flight, block 16.
TEST(KvGroupShape, CountsTheBlocksOfOneSequence) {
  KvGroupShape sliding{16, 16, 1024, 0}, full{16, 16, 0, 0};
  EXPECT_EQ(sliding.BlocksFor(8192, 256), 81);
  EXPECT_EQ(sliding.BlocksFor(1000, 256), 63);  // a prompt has no more than its own blocks
  EXPECT_EQ(full.BlocksFor(8192, 256), 512);
  EXPECT_EQ(full.BlocksFor(1, 1), 1);
}

}  // namespace
}  // namespace ashlar
