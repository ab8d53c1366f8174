#include "catalogue/groups.h"

#include <gmock/gmock.h>

#include "catalogue/pools.h"
#include "support/catalogue_kv_oracle.h"

namespace ashlar {
namespace {

using testing::Differences;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ParseCache;

std::string Differs(const char* what, const Json& ours, const Json& wanted) {
  return ours == wanted ? "" : std::string(what) + " " + ours.dump() + " is not " + wanted.dump();
}

std::vector<ReferenceCache> Layers(const Json& json) {
  std::vector<ReferenceCache> layers;
  for (const Json& run : json.at("layers"))
    layers.insert(layers.end(), run[0].get<size_t>(),
                  ParseCache(json.at("specs")[run[1].get<size_t>()]));
  return layers;
}

Json Facts(const ReferenceCache& cache) {
  PageGeometry page = *PageOf(cache);
  bool state = cache.cache.kind == KvKind::kMamba;
  bool chunked = cache.cache.kind == KvKind::kChunkedLocal;
  return {Name(cache.cache.kind),
          cache.block_tokens,
          page.page_bytes,
          cache.cache.padded_page,
          chunked ? 0 : cache.cache.window,
          chunked ? cache.cache.window : cache.chunk,
          state ? 0 : page.head_slots,
          state ? 0 : page.states,
          state ? 0 : page.content_bytes};
}

Json Described(const ReferenceGroup& group) {
  Json json = {{"layers", group.layers}};
  if (!group.mixed) {
    json["cache"] = Facts(group.caches.front());
    return json;
  }
  Json runs = Json::array();
  for (const ReferenceCache& cache : group.caches) {
    Json facts = Facts(cache);
    if (!runs.empty() && runs.back()[1] == facts) {
      runs.back()[0] = runs.back()[0].get<int>() + 1;
    } else {
      runs.push_back(Json::array({1, facts}));
    }
  }
  json["mixed"] = runs;
  json["block"] = group.block_tokens();
  json["page"] = group.block_bytes();
  return json;
}

std::string CheckPool(const Json& json, const std::vector<ReferenceGroup>& groups) {
  ReferencePool pool =
      PlaceReferenceGroups(groups, *ParseKvLayout(json.at("layout").get<std::string>()),
                           json.at("memory"), json.value("blocks", 0));
  std::string difference = Differs("error", Label(pool.error), json.value("error", ""));
  if (!difference.empty() || pool.error != LayoutError::kNone) return difference;
  difference = Differs("pool", {pool.block_bytes, pool.blocks}, json.at("pool"));
  if (!difference.empty()) return difference;
  Json placements = Json::array();
  for (const ReferencePlacement& at : pool.placements)
    placements.push_back({at.layers, at.size, at.layer_stride, at.block_stride, at.offset});
  return Differs("placements", placements, json.at("placements"));
}

std::string CheckUnits(const Json& json, const std::vector<ReferenceGroup>& groups) {
  if (!json.contains("units")) return "";
  std::optional<Granularity> units =
      ReferenceUnits(groups, {json.value("prefixCache", true), json.value("unit", 0)});
  return Differs("units", units ? Json({units->scheduler, units->hash}) : Json("unit"),
                 json.at("units"));
}

std::string CheckGroups(const Json& json) {
  ReferenceGrouping grouping =
      GroupLikeReference(Layers(json), *ParseKvLayout(json.at("layout").get<std::string>()),
                         !json.value("oneLifetime", false));
  if (!json.contains("groups"))
    return Differs("error", Label(grouping.error), json.value("error", ""));
  Json groups = Json::array();
  for (const ReferenceGroup& group : grouping.groups) groups.push_back(Described(group));
  std::string difference = Differs("groups", groups, json.at("groups"));
  if (difference.empty()) difference = CheckPool(json, grouping.groups);
  if (difference.empty()) difference = CheckUnits(json, grouping.groups);
  if (!difference.empty() || !json.contains("perRequest")) return difference;
  Json blocks = Json::array();
  for (const ReferenceGroup& group : grouping.groups) {
    blocks.push_back(
        ReferenceBlocksPerRequest(group, json.value("length", 8192), json.value("inFlight", 256)));
  }
  return Differs("blocks per request", blocks, json.at("perRequest"));
}

std::string CheckPage(const Json& json) {
  ReferenceCache cache = ParseCache(json.at("spec"));
  cache.cache.encoder_tokens = json.value("encoder", 0);
  std::optional<PageGeometry> page = PageOf(cache);
  if (!page) return Differs("error", Label(GroupError::kNoPage), json.at("want"));
  int64_t blocks =
      BlocksPerRequest(cache.cache, cache.block_tokens, json.at("length"), json.at("inFlight"));
  return Differs("page",
                 {page->page_bytes, page->head_slots, page->states, page->content_bytes, blocks},
                 json.at("want"));
}

TEST(ReferenceGroups, AreThoseOfTheEngine) {
  auto check = [](const Json& json) {
    return json.at("ask") == "page" ? CheckPage(json) : CheckGroups(json);
  };
  EXPECT_THAT(Differences("groups.jsonl", 508, check), IsEmpty());
}

ReferenceCache Full(int kv_heads) {
  ReferenceCache cache;
  cache.block_tokens = 16;
  cache.cache.kv_heads = kv_heads;
  cache.cache.head_size = cache.cache.head_size_v = 128;
  return cache;
}

ReferenceCache Sliding(int kv_heads, int window) {
  ReferenceCache cache = Full(kv_heads);
  cache.cache.kind = KvKind::kSliding;
  cache.cache.window = window;
  return cache;
}

// What ours refuses or does otherwise.
TEST(ReferenceGroups, OfTwoWindowsAreTwo) {
  EXPECT_EQ(GroupLikeReference({Full(8), Sliding(8, 512), Sliding(8, 1024)}, KvLayout::kLBNHC, true)
                .groups.size(),
            3u);
}

TEST(ReferenceGroups, OfDenseAndLatentLayersAreOneOfMixedPages) {
  ReferenceCache latent = Full(1);
  latent.cache.kind = KvKind::kMla;
  latent.cache.head_size = 576;
  latent.cache.head_size_v = 0;
  ReferenceGrouping grouping = GroupLikeReference({Full(8), latent}, KvLayout::kLBNHC, true);
  ASSERT_EQ(grouping.groups.size(), 1u);
  EXPECT_TRUE(grouping.groups[0].mixed);
}

TEST(ReferenceGroups, LoseLayersOfUnequalSets) {
  std::vector<ReferenceCache> layers(6, Full(8));
  layers.insert(layers.end(), 6, Sliding(8, 512));
  layers.insert(layers.end(), 5, Sliding(2, 512));
  ReferenceGrouping grouping = GroupLikeReference(layers, KvLayout::kBLHNC, true);
  size_t placed = 0;
  for (const ReferenceGroup& group : grouping.groups) placed += group.layers.size();
  EXPECT_EQ(placed, layers.size() - 1);
}

TEST(ReferenceGroups, KeptInFullNeedOneWindow) {
  auto kept = [](const std::vector<ReferenceCache>& layers) {
    return Label(GroupLikeReference(layers, KvLayout::kLBNHC, false).error);
  };
  EXPECT_EQ(kept({Full(8), Sliding(8, 512)}), "");
  EXPECT_EQ(kept({Full(8), Sliding(8, 512), Sliding(8, 1024)}), "windows");
  ReferenceCache state;
  state.block_tokens = 16;
  state.cache.kind = KvKind::kMamba;
  state.cache.states = {{{1024}, DType::kF32}};
  EXPECT_EQ(kept({Full(8), state}), "promotion");
}

TEST(ReferenceUnits, OfOneGroupAreItsBlock) {
  std::vector<ReferenceGroup> one = GroupLikeReference({Full(8)}, KvLayout::kLBNHC, true).groups;
  EXPECT_FALSE(ReferenceUnits(one, {true, 8}));
  EXPECT_EQ(ReferenceUnits(one, {true, 16})->hash, 16);
  EXPECT_EQ(ReferenceUnits(one, {false, 8})->hash, 16);
}

}  // namespace
}  // namespace ashlar
