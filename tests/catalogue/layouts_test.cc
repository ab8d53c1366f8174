#include "catalogue/layouts.h"

#include <gmock/gmock.h>

#include "catalogue/pools.h"
#include "support/catalogue_kv_oracle.h"

namespace ashlar {
namespace {

using testing::Differences;
using ::testing::IsEmpty;
using testing::ParseCache;

std::string Differs(const Json& ours, const Json& wanted) {
  return ours == wanted ? "" : ours.dump() + " is not " + wanted.dump();
}

KvLayout LayoutOf(const Json& name) { return *ParseKvLayout(name.get<std::string>()); }

std::vector<KvLayout> ListOf(const Json& names) {
  std::vector<KvLayout> list;
  for (const Json& name : names) list.push_back(LayoutOf(name));
  return list;
}

Json Outcome(const LayoutOutcome& outcome) {
  return outcome.error == LayoutError::kNone ? Json(Name(outcome.layout))
                                             : Json(Label(outcome.error));
}

std::string CheckFacts(const Json& json) {
  KvLayout layout = LayoutOf(json.at("layout"));
  Json order = Json::array();
  for (KvDim dim : Info(layout).order) order.push_back(static_cast<int>(dim));
  return Differs({order, int{LayerCompact(layout)}, int{BlockOutermost(layout)},
                  int{BlockCompact(layout)}, OrderInBlock(layout)},
                 json.at("want"));
}

std::string CheckStrides(const Json& json) {
  ReferenceCache cache = ParseCache(json.at("spec"));
  KvStrides fixed{};
  if (json.contains("fixed")) fixed = json.at("fixed").get<KvStrides>();
  KvLayout layout = LayoutOf(json.at("layout"));
  ReferenceView view = ViewOfReference(cache, layout, json.at("layers"), json.at("blocks"),
                                       json.value("kernel", cache.block_tokens), fixed);
  if (view.error != LayoutError::kNone) return Differs(Label(view.error), json.at("want"));
  PageRuns runs = RunsOf(view.strides, view.extents);
  return Differs({view.extents, view.strides, PageOf(cache)->page_bytes, runs.count, runs.bytes},
                 json.at("want"));
}

std::string CheckCandidates(const Json& json) {
  std::vector<std::vector<KvLayout>> lists;
  for (const Json& list : json.at("lists")) lists.push_back(ListOf(list));
  Json names = Json::array();
  for (KvLayout layout : ReferenceCandidates(lists)) names.push_back(Name(layout));
  return Differs(names.empty() ? Json(Label(LayoutError::kNoCommon)) : names, json.at("want"));
}

std::string CheckResolve(const Json& json) {
  ReferenceLayoutRequest request;
  for (const Json& worker : json.at("workers")) request.workers.push_back(ListOf(worker));
  for (const Json& spec : json.at("specs"))
    request.pages.push_back({*PageOf(ParseCache(spec)), spec.value("sharded", true)});
  request.asked = json.value("asked", "");
  request.preferred = json.value("preferred", "");
  if (json.contains("recorded")) request.recorded = LayoutOf(json.at("recorded"));
  return Differs(Outcome(ResolveReferenceLayout(request)), json.at("want"));
}

std::string CheckRecord(const Json& json) {
  std::optional<KvLayout> recorded;
  if (json.contains("recorded")) recorded = LayoutOf(json.at("recorded"));
  return Differs(Outcome(RecordReferenceLayout(recorded, json.at("name").get<std::string>())),
                 json.at("want"));
}

std::string CheckExpress(const Json& json) {
  std::vector<std::vector<int64_t>> groups;
  for (const Json& group : json.at("groups")) {
    std::vector<int64_t>& pages = groups.emplace_back();
    for (const Json& spec : group) pages.push_back(PageOf(ParseCache(spec))->page_bytes);
  }
  LayoutError error = ExpressReferencePages(LayoutOf(json.at("layout")), groups);
  return Differs(error == LayoutError::kNone ? Json("ok") : Json(Label(error)), json.at("want"));
}

std::string CheckCase(const Json& json) {
  std::string ask = json.at("ask");
  if (ask == "facts") return CheckFacts(json);
  if (ask == "strides") return CheckStrides(json);
  if (ask == "candidates") return CheckCandidates(json);
  if (ask == "resolve") return CheckResolve(json);
  if (ask == "record") return CheckRecord(json);
  return CheckExpress(json);
}

TEST(ReferenceLayouts, AreThoseOfTheEngine) {
  EXPECT_THAT(Differences("layouts.jsonl", 309, CheckCase), IsEmpty());
}

TEST(ReferenceLayouts, OfShardedAndWholeCachesHaveBlocksOutermost) {
  ReferenceLayoutRequest request;
  request.workers = {{KvLayout::kLBNHC, KvLayout::kBLNHC}};
  request.pages = {{{4, 16, 128, 8192, 8192}, true}, {{2, 16, 128, 4096, 4096}, false}};
  EXPECT_EQ(ResolveReferenceLayout(request).layout, KvLayout::kBLNHC);
  request.workers = {{KvLayout::kLBNHC}};
  EXPECT_EQ(Label(ResolveReferenceLayout(request).error), "not_outermost");
  request.pages[1].sharded = true;
  EXPECT_EQ(ResolveReferenceLayout(request).layout, KvLayout::kLBNHC);
}

TEST(ReferenceLayouts, OfWorkersMustAgree) {
  ReferenceLayoutRequest request;
  request.workers = {{KvLayout::kLBNHC}, {KvLayout::kLBHNC}};
  request.pages = {{{4, 16, 128, 8192, 8192}, true}};
  EXPECT_EQ(Label(ResolveReferenceLayout(request).error), "disagree");
}

}  // namespace
}  // namespace ashlar
