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
       "p.json.devices[1].platform: \"tpu\": cuda, hip, cpu, reference or xpu"},
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
      {[](Json& j) { j["rows"][0].erase("kinds"); }, "p.json.rows[0].kinds: missing"},
      {[](Json& j) { j["rows"][0]["whatComesNext"] = 1; }, "rows[0].whatComesNext: unknown key"},
  };
  for (const Case& c : cases) {
    Json json = Captured();
    c.spoil(json);
    EXPECT_THAT(Refusal(json), HasSubstr(c.message));
    const Result<Platform> refused = PlatformFromJson(json, "p.json");
    for (const Problem& problem : refused.problems()) {
      EXPECT_FALSE(problem.found.empty() || problem.allowed.empty() || problem.next.empty())
          << problem.Text();
    }
  }
}

TEST(PlatformJson, EveryFieldOfADeviceComesBack) {
  Platform platform = *FindProfile("mi300x");
  platform.devices[0].index = 7;
  platform.devices[0].id = "0000:05:00.1";
  platform.devices[0].driver = "6.12.12";
  platform.devices[0].partition = "CPX 2 of 8";
  platform.devices[0].link = "xgmi:d2ca1b2b2c1b0a77";
  EXPECT_EQ(*PlatformFromJson(ToJson(platform), "p"), platform);
}

std::string Keys(const Json& object) {
  std::string keys;
  for (const auto& item : object.items()) keys += item.key() + " ";
  return keys;
}

// Whoever changes what a capture holds also raises its version, so that builds tell each other
// apart.
TEST(PlatformJson, VersionTwoHasTheseKeys) {
  Json json = Captured();
  EXPECT_EQ(json["version"], 2);
  EXPECT_EQ(Keys(json), "apiVersion kind version name probes devices rows ");
  EXPECT_EQ(Keys(json["probes"][0]), "platform outcome detail next ");
  EXPECT_EQ(Keys(json["devices"][0]),
            "platform index product capability id driver partition link computeUnits memorySpace "
            "memoryBytes freeBytes threads numaNodes l1dBytes l2Bytes l3Bytes ");
}

TEST(PlatformJson, ACaptureOfAnotherBuildSaysSoInOneLine) {
  Json json = Captured();
  json.erase("version");
  json["devices"][0].erase("computeUnits");
  EXPECT_EQ(Refusal(json),
            "p.json.version: no version number: 2, which this build writes; the capture is from an "
            "older build; capture the platform again with this build's ashlar probe --capture");
  json["version"] = 1;
  EXPECT_THAT(Refusal(json), HasSubstr("p.json.version: 1: 2, which this build writes; the "
                                       "capture is from an older build"));
  json["version"] = 3;
  json["whatComesNext"] = true;
  EXPECT_THAT(Refusal(json), HasSubstr("p.json.version: 3: 2, which this build writes; the "
                                       "capture is from a newer build"));
  json["version"] = 18446744073709551615u;
  EXPECT_THAT(Refusal(json), HasSubstr("a newer build"));
  json["version"] = "2";
  EXPECT_THAT(Refusal(json), HasSubstr("p.json.version: no version number"));
}

TEST(PlatformJson, AReportHasAnEnd) {
  Json json = Captured();
  for (const char* list : {"probes", "devices", "rows"}) {
    for (int i = 0; i < 2'000; ++i) json[list].push_back(Json::object());
  }
  EXPECT_LE(PlatformFromJson(json, "p.json").problems().size(), 50u);
  json = Captured();
  for (int i = 0; i < 2'000; ++i) json["k" + std::to_string(i)] = i;
  EXPECT_LE(PlatformFromJson(json, "p.json").problems().size(), 50u);
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
