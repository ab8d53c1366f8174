#include "common/op_args.h"

#include <gtest/gtest.h>

#include <functional>

namespace ashlar {
namespace {

// Two sequences over blocks of 4 tokens: 3 queries at the end of 9, 1 at the end of 5.
struct Attention {
  float memory[256] = {};
  int32_t table[2][3] = {{2, 0, 1}, {3, 4, -1}};
  int32_t query_start[3] = {0, 3, 4};
  int32_t context[2] = {9, 5};
  ashlar_attention args{.q = {memory, ASHLAR_F32, 3, {4, 2, 8}, {64, 32, 4}},
                        .out = {memory, ASHLAR_F32, 3, {4, 2, 8}, {64, 32, 4}},
                        .kv = {memory, 256, 64, 16, 5, ASHLAR_F16, 4, 1, 8, 8},
                        .block_table = table[0],
                        .table_stride = 3,
                        .query_start = query_start,
                        .context = context,
                        .sequences = 2,
                        .max_query = 3,
                        .max_context = 9,
                        .scale = 1,
                        .window = 0};
};

struct AttentionMistake {
  const char* message;
  std::function<void(Attention&)> make;
};

TEST(CheckAttention, NamesEachMistake) {
  EXPECT_EQ(CheckAttention(Attention().args), "");
  const AttentionMistake mistakes[] = {
      {"kv: no data", [](Attention& a) { a.args.kv.base = nullptr; }},
      {"kv: not float32, float16 or bfloat16", [](Attention& a) { a.args.kv.dtype = ASHLAR_I8; }},
      {"kv: an extent is not positive", [](Attention& a) { a.args.kv.block_tokens = 0; }},
      {"kv: a stride is no multiple of the element size",
       [](Attention& a) { a.args.kv.token_stride = 17; }},
      {"q: shape [4, 2, 8], dimension 2 should be 16",
       [](Attention& a) { a.args.kv.head_dim = 16; }},
      {"out: shape [3, 2, 8], dimension 0 should be 4",
       [](Attention& a) { a.args.out.shape[0] = 3; }},
      {"attention: 2 query heads over 3 KV heads", [](Attention& a) { a.args.kv.kv_heads = 3; }},
      {"attention: negative sequences or window", [](Attention& a) { a.args.window = -1; }},
      {"attention: query_start does not begin with 0", [](Attention& a) { a.query_start[0] = 1; }},
      {"attention: sequence 1 has a negative number of queries",
       [](Attention& a) { a.query_start[2] = 2; }},
      {"attention: sequence 1 has more queries than context",
       [](Attention& a) { a.context[1] = 0; }},
      {"attention: sequence 0 has more queries than max_query",
       [](Attention& a) { a.args.max_query = 2; }},
      {"attention: sequence 0 has more context than max_context",
       [](Attention& a) { a.args.max_context = 8; }},
      {"attention: sequence 0 has a block table shorter than its context",
       [](Attention& a) { a.args.table_stride = 2; }},
      {"attention: sequence 1 has block 5 of 5 at entry 1",
       [](Attention& a) { a.table[1][1] = 5; }},
      {"attention: sequence 1 has block -1 of 5 at entry 0",
       [](Attention& a) { a.table[1][0] = -1; }},
      {"attention: more queries than rows of q",
       [](Attention& a) { a.args.q.shape[0] = a.args.out.shape[0] = 3; }},
  };
  for (const AttentionMistake& mistake : mistakes) {
    Attention a;
    mistake.make(a);
    EXPECT_EQ(CheckAttention(a.args), mistake.message);
  }
}

TEST(CheckAttention, LooksAtNoBlockBehindTheWindow) {
  Attention a;
  a.args.window = 3;  // the oldest query is token 6 and sees keys from 4 on
  a.table[0][0] = -1;
  EXPECT_EQ(CheckAttention(a.args), "");
  a.args.window = 4;
  EXPECT_EQ(CheckAttention(a.args), "attention: sequence 0 has block -1 of 5 at entry 0");
}

TEST(CheckAttention, ASequenceWithoutQueriesNeedsNoBlock) {
  Attention a;
  a.query_start[2] = 3;
  a.table[1][0] = a.table[1][1] = -1;
  EXPECT_EQ(CheckAttention(a.args), "");
}

TEST(FirstVisible, CountsTheQueryItself) {
  ashlar_attention a{};
  EXPECT_EQ(FirstVisible(a, 7), 0);
  a.window = 1;
  EXPECT_EQ(FirstVisible(a, 7), 7);
  a.window = 8;
  EXPECT_EQ(FirstVisible(a, 7), 0);
  a.window = 100;
  EXPECT_EQ(FirstVisible(a, 7), 0);
}

struct Qkv {
  float memory[256] = {};
  int64_t slots[2] = {-1, 7};
  ashlar_qkv_prepare args{.qkv = {memory, ASHLAR_F32, 2, {2, 32}, {128, 4}},
                          .q_out = {memory, ASHLAR_F32, 3, {2, 2, 8}, {64, 32, 4}},
                          .q_norm = {},
                          .k_norm = {},
                          .eps = 1e-6f,
                          .positions = nullptr,
                          .inv_freq = memory,
                          .rotary_dim = 8,
                          .rope_scale = 1,
                          .rope_style = ASHLAR_ROPE_HALF,
                          .kv = {memory, 256, 64, 16, 2, ASHLAR_F16, 4, 1, 8, 8},
                          .slots = slots};
};

struct QkvMistake {
  const char* message;
  std::function<void(Qkv&)> make;
};

TEST(CheckQkvPrepare, NamesEachMistake) {
  EXPECT_EQ(CheckQkvPrepare(Qkv().args), "");
  const QkvMistake mistakes[] = {
      {"K and V heads differ in size", [](Qkv& q) { q.args.kv.head_dim_v = 4; }},
      {"q_out: shape [2, 2, 8], dimension 2 should be 4",
       [](Qkv& q) { q.args.kv.head_dim = q.args.kv.head_dim_v = 4; }},
      {"qkv: shape [2, 32], dimension 1 should be 48", [](Qkv& q) { q.args.kv.kv_heads = 2; }},
      {"q_norm: rank 2", [](Qkv& q) { q.args.q_norm = q.args.qkv; }},
      {"k_norm: rank 2", [](Qkv& q) { q.args.k_norm = q.args.qkv; }},
      {"rotary_dim 10", [](Qkv& q) { q.args.rotary_dim = 10; }},
      {"rotary_dim 3", [](Qkv& q) { q.args.rotary_dim = 3; }},
      {"slot 8 of 8", [](Qkv& q) { q.slots[1] = 8; }},
  };
  for (const QkvMistake& mistake : mistakes) {
    Qkv q;
    mistake.make(q);
    EXPECT_EQ(CheckQkvPrepare(q.args), std::string("qkv_prepare: ") + mistake.message);
  }
}

}  // namespace
}  // namespace ashlar
