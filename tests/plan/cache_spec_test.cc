#include "plan/cache_spec.h"

#include <gtest/gtest.h>

namespace ashlar {
namespace {

CacheSpec Dense(int64_t heads, int64_t k, int64_t v, DType dtype) {
  CacheSpec cache;
  cache.kv_heads = heads;
  cache.head_size = k;
  cache.head_size_v = v;
  cache.dtype = dtype;
  return cache;
}

CacheSpec Latent(int64_t size) {
  CacheSpec cache = Dense(1, size, 0, DType::kBF16);
  cache.kind = KvKind::kMla;
  return cache;
}

CacheSpec WithContent(int64_t heads, int64_t bytes) {
  CacheSpec cache = Dense(heads, 128, 128, DType::kBF16);
  cache.content_bytes = bytes;
  return cache;
}

int64_t PageBytes(const CacheSpec& cache, int block) {
  std::optional<PageGeometry> page = PageOf(cache, block);
  return page ? page->page_bytes : -1;
}

TEST(Page, IsHeadsTimesTokensTimesContent) {
  EXPECT_EQ(PageBytes(Dense(8, 128, 128, DType::kBF16), 16), 65'536);
  EXPECT_EQ(PageBytes(Dense(8, 128, 128, DType::kBF16), 16) * 32, 2'097'152);
  EXPECT_EQ(PageBytes(Dense(2, 64, 64, DType::kF32), 16), 16'384);
  PageGeometry expected{8, 16, 512, 65'536, 65'536};
  EXPECT_EQ(PageOf(Dense(8, 128, 128, DType::kBF16), 16), expected);
}

TEST(Page, CountsAsymmetricValues) {
  EXPECT_EQ(PageBytes(Dense(2, 64, 32, DType::kF32), 16), 12'288);
}

TEST(Page, IsPaddedButNeverCut) {
  CacheSpec cache = Dense(1, 2, 2, DType::kF32);
  EXPECT_EQ(PageBytes(cache, 16), 256);
  cache.padded_page = 384;
  EXPECT_EQ(PageBytes(cache, 16), 384);
  EXPECT_EQ(PageOf(cache, 16)->used_bytes, 256);
  cache.padded_page = 100;
  EXPECT_EQ(PageOf(cache, 16), std::nullopt);
}

TEST(Page, OfLatentAttentionHasNoValues) {
  EXPECT_EQ(PageBytes(Latent(576), 16), 18'432);
  EXPECT_EQ(PageBytes(Latent(576), 64), 73'728);
  LayerSpec layer;
  layer.kind = KvKind::kMla;
  layer.kv_heads = 1;
  layer.head_dim = 576;
  layer.head_dim_v = 512;
  EXPECT_EQ(PageBytes(CacheOf(layer, {}), 16), 18'432);
}

TEST(Page, OfSparseLatentAttentionHoldsTheIndexersKeys) {
  LayerSpec layer;
  layer.kind = KvKind::kMla;
  layer.kv_heads = 1;
  layer.head_dim = 576;
  layer.sparse = true;
  layer.indexer_bytes = 132;
  EXPECT_EQ(PageBytes(CacheOf(layer, {}), 64), 64 * (1152 + 132));
}

TEST(Page, TakesContentThatIsNoMultipleOfTheType) {
  CacheSpec packed = Latent(576);
  packed.content_bytes = 656;
  EXPECT_EQ(PageBytes(packed, 64), 41'984);
  EXPECT_EQ(PageBytes(WithContent(8, 256 + 8), 16), 33'792);
  EXPECT_EQ(PageBytes(WithContent(8, 128 + 8), 16), 17'408);
  EXPECT_EQ(PageBytes(WithContent(8, 144), 16), 18'432);
}

TEST(Page, SharesStatesAndRoundsToAMultiple) {
  CacheSpec compressed = Latent(576);
  compressed.content_bytes = 584;
  compressed.tokens_per_state = 4;
  compressed.page_multiple = 576;
  EXPECT_EQ(PageBytes(compressed, 256), 37'440);
  EXPECT_EQ(PageOf(compressed, 256)->states, 64);
}

TEST(Page, OfAStateIgnoresTheBlock) {
  CacheSpec mamba;
  mamba.kind = KvKind::kMamba;
  mamba.states = {{{2, 512}, DType::kF32}, {{3, 32, 32}, DType::kF32}};
  EXPECT_EQ(PageBytes(mamba, 16), 16'384);
  EXPECT_EQ(PageBytes(mamba, 544), 16'384);
  mamba.states = {{{3, 8192}, DType::kBF16}, {{32, 128, 128}, DType::kBF16}};
  EXPECT_EQ(PageBytes(mamba, 16), 1'097'728);
  mamba.states[1].dtype = DType::kF32;
  EXPECT_EQ(PageBytes(mamba, 16), 2'146'304);
  mamba.padded_page = 2'200'000;
  EXPECT_EQ(PageBytes(mamba, 16), 2'200'000);
}

TEST(Page, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(PageOf(Dense(int64_t{1} << 40, int64_t{1} << 40, 1, DType::kF32), 16), std::nullopt);
  EXPECT_EQ(PageOf(Dense(0, 64, 64, DType::kF32), 16), std::nullopt);
}

TEST(BlocksPerRequest, OfFullAttentionCoverTheContext) {
  EXPECT_EQ(BlocksPerRequest(Dense(1, 64, 64, DType::kF32), 16, 8192, 256), 512);
  EXPECT_EQ(BlocksPerRequest(Dense(1, 64, 64, DType::kF32), 16, 8193, 256), 513);
}

TEST(BlocksPerRequest, OfAWindowCoverItAndTheStep) {
  CacheSpec cache = Dense(1, 64, 64, DType::kF32);
  cache.kind = KvKind::kSliding;
  cache.window = 1024;
  EXPECT_EQ(BlocksPerRequest(cache, 16, 8192, 256), 81);
  EXPECT_EQ(BlocksPerRequest(cache, 16, 1000, 256), 64);
}

TEST(BlocksPerRequest, OfAChunkCoverItAndTheStep) {
  CacheSpec cache = Dense(1, 64, 64, DType::kF32);
  cache.kind = KvKind::kChunkedLocal;
  cache.window = 512;
  EXPECT_EQ(BlocksPerRequest(cache, 16, 8192, 255), 48);
}

TEST(BlocksPerRequest, OfStatesAndOfNothingIgnoreTheContext) {
  CacheSpec cache;
  cache.kind = KvKind::kMamba;
  EXPECT_EQ(BlocksPerRequest(cache, 16, 8192, 256), 1);
  cache.extra_states = 2;
  EXPECT_EQ(BlocksPerRequest(cache, 16, 8192, 256), 3);
  cache.kind = KvKind::kEncoderOnly;
  EXPECT_EQ(BlocksPerRequest(cache, 16, 8192, 256), 0);
}

TEST(Kinds, HaveOneRowEach) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    EXPECT_EQ(kKinds[i].kind, static_cast<KvKind>(i));
    EXPECT_EQ(ParseKvKind(Name(kKinds[i].kind)), kKinds[i].kind);
  }
}

}  // namespace
}  // namespace ashlar
