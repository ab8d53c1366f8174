#include "engine/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "support/toy_model_plan.h"

namespace ashlar {
namespace {

constexpr int kBlock = 16, kContext = 4096;

// Sequences that decode at positions of their own, with blocks for them.
class BatchTest : public testing::Test {
 protected:
  ~BatchTest() override {
    for (auto& sequence : sequences_) {
      for (BlockTable& table : sequence->tables) table.Clear();
    }
  }

  std::unique_ptr<Batch> Make(int sequences) {
    return std::move(*Batch::Create(*device_, cache_, {sequences, sequences, sequences, kContext}));
  }
  std::vector<Slice> Slices(int count) {
    std::vector<Slice> slices;
    for (int i = 0; i < count; ++i) {
      auto sequence = std::make_unique<Sequence>();
      sequence->id = next_id_++;
      sequence->admissions = 1;
      sequence->computed = 20 + i;
      sequence->tokens.assign(static_cast<size_t>(sequence->computed) + 1, 7);
      sequence->prompt_tokens = sequence->computed;
      sequence->tables = cache_.MakeTables();
      for (BlockTable& table : sequence->tables) EXPECT_TRUE(table.Cover(sequence->computed + 1));
      slices.push_back({sequence.get(), 1, 1});
      sequences_.push_back(std::move(sequence));
    }
    return slices;
  }
  Slice Prompt(int tokens) {
    Slice slice = Slices(1)[0];
    Sequence& sequence = *slice.sequence;
    sequence.tokens.assign(static_cast<size_t>(sequence.computed + tokens), 7);
    for (BlockTable& table : sequence.tables) {
      EXPECT_TRUE(table.Cover(sequence.computed + tokens));
    }
    slice.tokens = tokens;
    return slice;
  }
  static int32_t Entry(const StepInput& input, int row, int column) {
    return input.groups[0].block_table[row * input.groups[0].table_stride + column];
  }

  std::unique_ptr<Device> device_ = toy::OpenReference();
  PrefixCache cache_{{{kBlock, kBlock, 0, 2000}}, {true, 1, Sha256}};
  std::vector<std::unique_ptr<Sequence>> sequences_;
  uint64_t next_id_ = 1;
};

// KV-10: around each limit, with the padding of a graph's shape; the sanitizer watches the ends.
TEST_F(BatchTest, PaddingStaysInsideTheArrays) {
  for (int limit : {1, 3, 5, 8, 9, 63, 65}) {
    std::unique_ptr<Batch> batch = Make(limit);
    for (int count : {1, limit - 1, limit}) {
      if (count < 1) continue;
      SCOPED_TRACE(testing::Message() << count << " of " << limit);
      std::vector<Slice> slices = Slices(count);
      const StepShape shape = *batch->ShapeFor(slices);
      ASSERT_GE(shape.sequences, count);
      ASSERT_LE(shape.sequences, limit);
      const StepInput& input = (*batch->Fill(slices, &shape))->input;
      EXPECT_EQ(input.sequences, shape.sequences);
      EXPECT_EQ(input.tokens, shape.sequences);
      EXPECT_EQ(input.logit_rows, shape.sequences);
      for (int row = count; row < shape.sequences; ++row) {
        EXPECT_EQ(input.groups[0].slots[row], -1);  // written nowhere
        EXPECT_EQ(input.context[row], 0);           // attention leaves it out
        for (int column : {0, static_cast<int>(input.groups[0].table_stride) - 1}) {
          EXPECT_EQ(Entry(input, row, column), kNullBlock);
        }
      }
    }
  }
}

TEST_F(BatchTest, EqualShapesHaveEqualAddresses) {
  std::unique_ptr<Batch> batch = Make(8);
  std::vector<Slice> five = Slices(5), seven = Slices(7);
  const StepShape shape = *batch->ShapeFor(five);
  ASSERT_EQ(shape, *batch->ShapeFor(seven));
  StepArrays first = **batch->Fill(five, &shape);
  (void)batch->Fill(Slices(3));
  StepArrays second = **batch->Fill(seven, &shape);
  EXPECT_EQ(first.ids, second.ids);
  EXPECT_EQ(first.draws, second.draws);
  EXPECT_EQ(first.input.context, second.input.context);
  EXPECT_EQ(first.input.groups[0].slots, second.input.groups[0].slots);
  EXPECT_EQ(first.input.groups[0].block_table, second.input.groups[0].block_table);
  EXPECT_EQ(first.input.max_context, second.input.max_context);
}

TEST_F(BatchTest, PromptsOfAboutOneLengthHaveOneShape) {
  auto batch = *Batch::Create(*device_, cache_, {4, 2048, 4, kContext});
  const std::vector<Slice> first = {Prompt(70)};
  const StepShape shape = *batch->ShapeFor(first);
  const StepInput alike = (*batch->Fill(first, &shape))->input;
  for (int tokens : {65, 100, 127}) {
    const std::vector<Slice> prompt = {Prompt(tokens)};
    ASSERT_EQ(*batch->ShapeFor(prompt), shape);
    const StepInput& input = (*batch->Fill(prompt, &shape))->input;
    EXPECT_EQ(input.tokens, 128);
    EXPECT_EQ(input.sequences, 2);
    EXPECT_EQ(input.logit_rows, 2);
    EXPECT_EQ(input.query_start[1], tokens);
    EXPECT_EQ(input.query_start[2], 128);
    EXPECT_EQ(input.context[0], 20 + tokens);
    EXPECT_EQ(input.context[1], tokens == 127 ? 0 : 128 - tokens);
    EXPECT_EQ(input.logit_tokens[0], tokens - 1);
    EXPECT_EQ(std::count(input.groups[0].slots, input.groups[0].slots + 128, -1), 128 - tokens);
    EXPECT_EQ(Entry(input, 1, 0), kNullBlock);
    EXPECT_EQ(input.ids, alike.ids);
    EXPECT_EQ(input.groups[0].block_table, alike.groups[0].block_table);
    EXPECT_EQ(input.max_query, alike.max_query);
    EXPECT_GE(input.max_query, tokens);
    EXPECT_EQ(input.max_context, alike.max_context);
  }
  EXPECT_EQ(batch->ShapeFor(std::vector{Prompt(128)})->sequences, 1);
}

TEST_F(BatchTest, OtherPromptsHaveNoShape) {
  auto batch = *Batch::Create(*device_, cache_, {4, 2048, 4, kContext});
  Slice part = Prompt(100);
  part.logits = 0;
  EXPECT_FALSE(batch->ShapeFor(std::vector{part}));
  EXPECT_FALSE(batch->ShapeFor(std::vector{Prompt(100), Prompt(100)}));
  EXPECT_FALSE(batch->ShapeFor(std::vector{Slices(1)[0], Prompt(100)}));
  EXPECT_TRUE(batch->ShapeFor(std::vector{Prompt(256)}));
  EXPECT_FALSE(batch->ShapeFor(std::vector{Prompt(257)}));
  EXPECT_FALSE(Make(1)->ShapeFor(std::vector{Prompt(100)}));
}

// Rows are rewritten only where something changed: every change must be seen.
TEST_F(BatchTest, TablesFollowWhatTheirSequencesHold) {
  std::unique_ptr<Batch> batch = Make(4);
  std::vector<Slice> slices = Slices(3);
  const StepShape shape = *batch->ShapeFor(slices);
  auto check = [&] {
    const StepInput& input = (*batch->Fill(slices, &shape))->input;
    for (size_t i = 0; i < slices.size(); ++i) {
      std::span<const BlockId> blocks = slices[i].sequence->tables[0].blocks();
      for (size_t b = 0; b < blocks.size(); ++b) {
        ASSERT_EQ(Entry(input, static_cast<int>(i), static_cast<int>(b)), blocks[b]);
      }
      ASSERT_EQ(Entry(input, static_cast<int>(i), static_cast<int>(blocks.size())), kNullBlock);
    }
    ASSERT_EQ(Entry(input, 3, 0), kNullBlock);
  };
  check();
  check();
  for (Slice& slice : slices) ASSERT_TRUE(slice.sequence->tables[0].Cover(100));  // grown
  check();
  std::swap(slices[0], slices[2]);  // moved
  check();
  Sequence& again = *slices[1].sequence;  // preempted and admitted again, on other blocks
  again.tables[0].Clear();
  again.tables = cache_.MakeTables();
  ASSERT_TRUE(again.tables[0].Cover(40));
  ++again.admissions;
  check();
  slices.pop_back();  // ended
  slices.push_back(Slices(1)[0]);
  check();
}

// Then no row is written anew when one sequence takes a block.
TEST_F(BatchTest, WithoutAShapeTablesStayWhereTheyAreWhileSequencesGrow) {
  std::unique_ptr<Batch> batch = Make(3);
  std::vector<Slice> slices = Slices(3);
  const GroupStep before = (*batch->Fill(slices))->input.groups[0];
  for (int tokens : {40, 200, 64 * kBlock}) {
    for (Slice& slice : slices) ASSERT_TRUE(slice.sequence->tables[0].Cover(tokens));
    const StepInput& input = (*batch->Fill(slices))->input;
    EXPECT_EQ(input.groups[0].block_table, before.block_table);
    EXPECT_EQ(input.groups[0].table_stride, before.table_stride);
    for (int i = 0; i < 3; ++i) {
      std::span<const BlockId> blocks = slices[static_cast<size_t>(i)].sequence->tables[0].blocks();
      for (size_t b = 0; b < blocks.size(); ++b) {
        ASSERT_EQ(Entry(input, i, static_cast<int>(b)), blocks[b]);
      }
    }
  }
  ASSERT_TRUE(slices[0].sequence->tables[0].Cover(64 * kBlock + 1));
  EXPECT_EQ((*batch->Fill(slices))->input.groups[0].table_stride, 128);
}

TEST_F(BatchTest, ATokenUnderWayRefersToItsRow) {
  std::unique_ptr<Batch> batch = Make(2);
  std::vector<Slice> slices = Slices(1);
  slices[0].sequence->tokens.back() = -1 - 5;
  EXPECT_EQ((*batch->Fill(slices))->ids[0], -6);
}

}  // namespace
}  // namespace ashlar
