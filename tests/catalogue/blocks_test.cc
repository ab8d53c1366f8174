#include "catalogue/blocks.h"

#include <gmock/gmock.h>

#include "catalogue/pools.h"
#include "support/catalogue_kv_oracle.h"

namespace ashlar {
namespace {

using testing::Differences;
using ::testing::IsEmpty;
using testing::OracleRows;
using testing::ParseCache;

std::string Differs(const Json& ours, const Json& wanted) {
  return ours == wanted ? "" : ours.dump() + " is not " + wanted.dump();
}

Json Or(std::optional<int> tokens, BlockError error) {
  return tokens ? Json(*tokens) : Json(Label(error));
}

Json Indices(const std::vector<std::string>& names) {
  Json indices = Json::array();
  for (const std::string& name : names) indices.push_back(std::stoi(name));
  return indices;
}

std::string CheckPlan(const Json& json) {
  std::vector<OracleRows> groups;
  Json all = Json::array();
  for (const Json& rows : json.at("groups")) {
    groups.emplace_back(rows);
    for (const Json& row : rows) all.push_back(row);
  }
  OracleRows rows(all);
  int requested = json.at("requested");
  std::optional<int> tokens = requested;
  if (requested == 0) tokens = SharedReferenceBlock(rows.pointers(), kDefaultBlockTokens);
  if (!tokens) return Differs(Label(BlockError::kNoSharedBlock), json.at("want"));
  Json kernels = Json::array();
  for (const OracleRows& group : groups)
    kernels.push_back(KernelBlock(group.pointers(), *tokens).value_or(0));
  std::string difference = Differs({*tokens, kernels}, json.at("want"));
  if (!difference.empty() || !json.contains("rejecting")) return difference;
  return Differs(Indices(RejectingRows({rows.pointers()}, *tokens)), json.at("rejecting"));
}

// Bytes of one token of one layer: as the KV type has it, or with K and V packed to half a byte a
// value and a scale byte for 16 of them.
int64_t TokenBytes(const Json& json, bool wide) {
  int64_t heads = json.at("heads"), size = json.at("size");
  bool model_type = wide || json.at("cache") == "auto" || json.at("cache") == "bfloat16";
  if (json.value("latent", false)) return size * (model_type ? 2 : 1);
  if (!wide && json.value("packed", false)) return heads * 2 * (size / 2 + size / 16);
  return heads * 2 * size * (model_type ? 2 : 1);
}

std::string CheckUpdate(const Json& json) {
  OracleRows rows(json.at("rows"));
  ReferenceBlockRequest request;
  request.platform = *ParseReferencePlatform(json.at("platform").get<std::string>());
  request.rows = rows.pointers();
  request.requested = json.at("requested");
  request.latent = json.value("latent", false);
  request.token_bytes = TokenBytes(json, false);
  if (json.value("wide", false)) request.wide_token_bytes = TokenBytes(json, true);
  if (json.contains("spec")) request.state_page = PageOf(ParseCache(json.at("spec")))->page_bytes;
  request.aligned_states = json.value("aligned", false);
  request.checkpoint_tokens = json.value("checkpoint", 0);
  request.gated_delta = json.value("gatedDelta", false);

  ReferenceBlocks blocks = ReferenceBlocksFor(request);
  std::string difference = Differs(Label(blocks.error), json.value("error", ""));
  if (!difference.empty()) return difference;
  if (blocks.error != BlockError::kNone && blocks.error != BlockError::kRejectedBlock) return "";
  difference = Differs({blocks.tokens, blocks.state_tokens, blocks.state_page, blocks.wide_page},
                       json.at("want"));
  if (!difference.empty()) return difference;
  return Differs(Indices(blocks.rejecting), json.value("rejecting", Json::array()));
}

// Extents and strides of [B, H, N, C] in elements of K and V; of a state in bytes.
Json InElements(const ReferenceView& view, const ReferenceCache& cache) {
  int64_t bytes =
      cache.cache.kind == KvKind::kMamba ? 1 : StorageBytes(cache.cache.dtype, 1).value();
  Json shape = Json::array(), strides = Json::array();
  for (int dim = kDimB; dim <= kDimC; ++dim) {
    shape.push_back(dim == kDimC ? view.extents[kDimC] / bytes
                                 : view.extents[static_cast<size_t>(dim)]);
    strides.push_back(dim == kDimC ? 1 : view.strides[static_cast<size_t>(dim)] / bytes);
  }
  return {shape, strides};
}

std::string CheckWorker(const Json& json) {
  KvLayout layout = *ParseKvLayout(json.at("layout").get<std::string>());
  std::vector<ReferenceGroup> groups;
  for (const Json& item : json.at("groups")) {
    ReferenceGroup& group = groups.emplace_back();
    auto layers = item.at("layers").get<size_t>();
    group.layers.resize(layers);
    group.caches.assign(layers, ParseCache(item.at("spec")));
  }
  ReferencePool pool = PlaceReferenceGroups(groups, layout, 0, json.at("blocks"));
  Json kernels = Json::array(), views = Json::array();
  for (size_t i = 0; i < groups.size(); ++i) {
    const ReferenceCache& cache = groups[i].caches.front();
    OracleRows rows(json.at("groups")[i].at("rows"));
    int64_t stride = pool.placements[i].block_stride;
    std::optional<int> kernel = cache.block_tokens;
    if (cache.cache.kind != KvKind::kMamba) {
      kernel =
          WorkerKernelBlock(rows.pointers(), cache.block_tokens, PageOf(cache)->page_bytes, stride);
    }
    if (!kernel) return Differs(Label(BlockError::kNoKernelBlock), json.at("want"));
    kernels.push_back(*kernel);
    ReferenceView view = KernelViewOf(cache, layout, static_cast<int64_t>(groups[i].layers.size()),
                                      pool.blocks, *kernel, stride);
    if (view.error != LayoutError::kNone) {
      views = Label(view.error);
      break;
    }
    Json one = InElements(view, cache), flat = one[0];
    for (const Json& number : one[1]) flat.push_back(number);
    views.push_back(flat);
  }
  return Differs({kernels, views}, {json.at("want"), json.value("view", Json())});
}

std::string CheckView(const Json& json) {
  ReferenceCache cache = ParseCache(json.at("spec"));
  KvLayout layout = *ParseKvLayout(json.at("layout").get<std::string>());
  int64_t layers = json.at("layers");
  ReferenceGroup group;
  group.layers.resize(static_cast<size_t>(layers));
  group.caches.assign(static_cast<size_t>(layers), cache);
  ReferencePool pool = PlaceReferenceGroups({group}, layout, 0, json.at("blocks"));
  if (pool.error != LayoutError::kNone) return Differs(Label(pool.error), json.at("want"));
  ReferenceView view = KernelViewOf(cache, layout, layers, pool.blocks, json.at("kernel"),
                                    pool.placements[0].block_stride);
  if (view.error != LayoutError::kNone) return Differs(Label(view.error), json.at("want"));
  Json wanted = Json::array();
  for (int64_t layer = 0; layer < layers; ++layer) {
    Json one = InElements(view, cache);
    wanted.push_back({layer * pool.placements[0].layer_stride, one[0], one[1]});
  }
  return Differs(wanted, json.at("want"));
}

std::string CheckCase(const Json& json) {
  std::string ask = json.at("ask");
  if (ask == "plan") return CheckPlan(json);
  if (ask == "update") return CheckUpdate(json);
  if (ask == "worker") return CheckWorker(json);
  if (ask == "view") return CheckView(json);
  OracleRows rows(ask == "row" ? Json::array({json.at("row")}) : json.at("rows"));
  if (ask == "check") {
    bool changed = json.at("before") != json.at("after");
    Json rejecting = Json::array();
    if (changed) rejecting = Indices(RejectingRows({rows.pointers()}, json.at("after")));
    return Differs(rejecting, json.at("want"));
  }
  int tokens = json.at("tokens");
  if (ask == "row") {
    const AttentionRow& row = *rows.pointers().front();
    return Differs({int{SupportsBlock(row, tokens)}, PreferredReferenceBlock(row, tokens)},
                   json.at("want"));
  }
  if (ask == "kernel") {
    return Differs(Or(KernelBlock(rows.pointers(), tokens), BlockError::kNoKernelBlock),
                   json.at("want"));
  }
  return Differs(Or(SharedReferenceBlock(rows.pointers(), tokens), BlockError::kNoSharedBlock),
                 json.at("want"));
}

TEST(ReferenceBlocks, AreThoseOfTheEngine) {
  EXPECT_THAT(Differences("blocks.jsonl", 1253, CheckCase), IsEmpty());
}

ReferenceBlockRequest Hybrid(const GroupRows& rows) {
  ReferenceBlockRequest request;
  request.rows = rows;
  request.token_bytes = 2048;
  request.state_page = 1'097'728;
  return request;
}

// Where this engine and ours part.
TEST(ReferenceBlocks, AreRoundedToEveryRowsKernel) {
  AttentionRow any = testing::ParseRow("m16", "A"), exact = testing::ParseRow("128", "B");
  ReferenceBlockRequest request = Hybrid({&any, &exact});
  request.requested = 64;
  EXPECT_EQ(ReferenceBlocksFor(request).tokens, 640);
}

TEST(ReferenceBlocks, KeepNoStateOfEveryBlock) {  // BV-29
  AttentionRow any = testing::ParseRow("m16", "A");
  ReferenceBlockRequest request = Hybrid({&any});
  request.checkpoint_tokens = 256;
  EXPECT_EQ(ReferenceBlocksFor(request).tokens, 544);
  request.aligned_states = true;
  EXPECT_EQ(ReferenceBlocksFor(request).tokens, 768);
}

TEST(ReferenceBlocks, OfACpuBeginWithALargerDefault) {
  AttentionRow any = testing::ParseRow("m16", "A");
  ReferenceBlockRequest request = Hybrid({&any});
  request.platform = ReferencePlatform::kCpu;
  EXPECT_EQ(ReferenceBlocksFor(request).tokens, 640);
}

TEST(ReferenceBlocks, OfAnXpuAreRoundedAndChecked) {  // BV-14, BV-27
  AttentionRow any = testing::ParseRow("m16", "A"), exact = testing::ParseRow("16|16", "B");
  ReferenceBlockRequest request = Hybrid({&any});
  request.platform = ReferencePlatform::kXpu;
  request.gated_delta = true;
  request.state_page = 1'073'152;
  ReferenceBlocks blocks = ReferenceBlocksFor(request);
  EXPECT_EQ(blocks.tokens, 576);
  EXPECT_EQ(blocks.state_page, 1'179'648);
  request.rows = {&exact};
  request.state_page = 0;
  blocks = ReferenceBlocksFor(request);
  EXPECT_EQ(Label(blocks.error), "rejected_block");
  EXPECT_EQ(blocks.rejecting, std::vector<std::string>{"B"});
}

TEST(ReferenceBlocks, OfTwoTypesHoldTheWiderPage) {  // BV-31
  AttentionRow row = testing::ParseRow("32,64", "A");
  ReferenceBlockRequest request;
  request.rows = {&row};
  request.token_bytes = 2048;
  request.wide_token_bytes = 4096;
  EXPECT_EQ(ReferenceBlocksFor(request).tokens, 64);
  request.token_bytes = 1152;
  EXPECT_EQ(ReferenceBlocksFor(request).tokens, 128);
}

TEST(WorkerKernelBlock, IsTheWholeBlockWithBlocksOutermost) {  // BV-34
  AttentionRow row = testing::ParseRow("64", "A"), odd = testing::ParseRow("24", "B");
  EXPECT_EQ(WorkerKernelBlock({&row}, 128, 8192, 8192), 64);
  EXPECT_EQ(WorkerKernelBlock({&row}, 128, 8192, 16384), 128);
  EXPECT_EQ(WorkerKernelBlock({&odd}, 128, 8192, 16384), 128);
}

}  // namespace
}  // namespace ashlar
