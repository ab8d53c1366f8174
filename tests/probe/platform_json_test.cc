#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "probe/platform.h"
#include "probe/profiles.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

Json Captured() { return ToJson(*FindProfile("h200")); }

std::string Refusal(const Json& json) {
  Result<Platform> platform = PlatformFromJson(json, "p.json");
  return platform.ok() ? "accepted" : Text(platform.problems());
}

TEST(PlatformJson, ComesBackAsItWas) {
  for (const std::string& name : PlatformProfiles()) {
    Platform platform = *FindProfile(name);
    platform.probes[0].outcome = ProbeOutcome::kNoAccess;
    platform.probes[0].next = "next \"quoted\"\n";
    Result<Json> text = ParseJson(DumpJson(ToJson(platform)), "p.json");
    ASSERT_TRUE(text.ok());
    Result<Platform> back = PlatformFromJson(*text, "p.json");
    ASSERT_TRUE(back.ok()) << Text(back.problems());
    EXPECT_EQ(*back, platform) << name;
  }
}

TEST(PlatformJson, EveryOutcomeHasItsName) {
  Platform platform = *FindProfile("cpu-avx2");
  const char* names[] = {"found", "absent", "noDriver", "noAccess", "broken"};
  for (int i = 0; i < 5; ++i) {
    platform.probes[0].outcome = static_cast<ProbeOutcome>(i);
    Json json = ToJson(platform);
    EXPECT_EQ(json["probes"][0]["outcome"], names[i]);
    EXPECT_EQ(PlatformFromJson(json, "p")->probes[0].outcome, static_cast<ProbeOutcome>(i));
  }
}

TEST(PlatformJson, MistakesAreRefusedAtTheirPlace) {
  struct Case {
    std::function<void(Json&)> spoil;
    const char* message;
  };
  const Case cases[] = {
      {[](Json& j) { j = Json::array(); }, "p.json: a list: an object"},
      {[](Json& j) { j.erase("name"); }, "p.json.name: missing"},
      {[](Json& j) { j["nmae"] = 1; }, "p.json.nmae: unknown key: name"},
      {[](Json& j) { j["kind"] = "Pod"; }, "p.json.kind: \"Pod\": Platform"},
      {[](Json& j) { j["apiVersion"] = "ashlar.dev/v9"; }, "p.json.apiVersion: \"ashlar.dev/v9\""},
      {[](Json& j) { j["devices"] = 3; }, "p.json.devices: 3: a list"},
      {[](Json& j) { j["devices"][0] = nullptr; }, "p.json.devices[0]: null: an object"},
      {[](Json& j) { j["devices"][1]["platform"] = "tpu"; },
       "p.json.devices[1].platform: \"tpu\": cuda, hip, cpu or reference"},
      {[](Json& j) { j["devices"][0]["threads"] = -1; }, "devices[0].threads: -1: a whole number"},
      {[](Json& j) { j["devices"][0]["threads"] = 1.5; }, "devices[0].threads: 1.5"},
      {[](Json& j) { j["devices"][0]["threads"] = "8"; }, "devices[0].threads: \"8\""},
      {[](Json& j) { j["devices"][0]["index"] = 18446744073709551615u; }, "devices[0].index"},
      {[](Json& j) { j["devices"][0]["memoryBytes"] = 1; }, "devices[0].freeBytes"},
      {[](Json& j) { j["devices"][0]["capability"]["value"] = int64_t{1} << 32; },
       "devices[0].capability.value"},
      {[](Json& j) { j["devices"][0]["capability"]["unit"] = "sm"; }, "capability.unit: \"sm\""},
      {[](Json& j) { j["devices"][0]["capability"]["names"] = {1}; }, "capability.names: 1"},
      {[](Json& j) { j["devices"][0]["capability"] = 9; }, "devices[0].capability: 9: an object"},
      {[](Json& j) { j["devices"].push_back(j["devices"][0]); }, "device cuda 0 stands twice"},
      {[](Json& j) { j["probes"].push_back(j["probes"][0]); }, "probe cuda stands twice"},
      {[](Json& j) { j["rows"].push_back(j["rows"][0]); }, "stands twice"},
      {[](Json& j) { j["probes"][0]["outcome"] = "fine"; }, "probes[0].outcome: \"fine\""},
      {[](Json& j) { j["rows"][0]["kinds"] = {"nope"}; }, "p.json.rows[0].kinds"},
      {[](Json& j) { j["rows"][0] = 1; }, "p.json.rows[0]"},
  };
  for (const Case& c : cases) {
    Json json = Captured();
    c.spoil(json);
    EXPECT_THAT(Refusal(json), HasSubstr(c.message));
  }
}

TEST(PlatformJson, ReportsAllMistakesAtOnce) {
  Json json = Captured();
  json["devices"][0]["threads"] = -1;
  json["devices"][0]["product"] = 1;
  json["probes"][0]["outcome"] = "fine";
  EXPECT_EQ(PlatformFromJson(json, "p.json").problems().size(), 3u);
}

TEST(PlatformJson, LongValuesAreCutInMessages) {
  Json json = Captured();
  json["kind"] = std::string(100'000, 'x');
  EXPECT_LT(Refusal(json).size(), 400u);
}

}  // namespace
}  // namespace ashlar
