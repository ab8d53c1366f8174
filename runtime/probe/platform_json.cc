// The captured form of a platform.
#include <fmt/format.h>

#include <array>
#include <set>

#include "probe/device_json.h"
#include "probe/json_object.h"
#include "probe/platform.h"

namespace ashlar {
namespace {

// Raised whenever a key is added, removed or changes its meaning.
constexpr int kVersion = 2;

constexpr std::array<std::string_view, 7> kPlatformKeys = {
    "apiVersion", "kind", "version", "name", "probes", "devices", "rows"};
const std::array<std::string, 1> kApiVersion = {"ashlar.dev/v1alpha1"};
const std::array<std::string, 1> kKind = {"Platform"};

// A capture of another build differs in its keys; one line says so instead of one for each key.
std::optional<Problem> CheckVersion(const Json& json, const std::string& place) {
  if (!json.is_object()) return std::nullopt;  // refused as a whole by whoever reads it next
  const auto found = json.find("version");
  const bool number = found != json.end() && found->is_number_integer();
  if (number && *found == Json(kVersion)) return std::nullopt;
  // Compared in its own type: the library would turn 2^64 - 1 into -1.
  const bool newer =
      number && (found->is_number_unsigned() ? found->get<uint64_t>() > uint64_t{kVersion}
                                             : found->get<int64_t>() > int64_t{kVersion});
  return Problem{place + ".version", number ? DumpJson(*found) : "no version number",
                 fmt::format("{}, which this build writes", kVersion),
                 fmt::format("the capture is from {} build; capture the platform again with "
                             "this build's ashlar probe --capture",
                             newer ? "a newer" : "an older")};
}

// Two entries that claim the same place make every later look-up depend on their order.
void RefuseRepeats(const Platform& platform, const std::string& place, Problems& problems) {
  std::set<std::string> seen;
  auto once = [&](const std::string& what) {
    if (seen.insert(what).second) return;
    problems.push_back({place, what + " stands twice", "each once",
                        "capture the platform again with ashlar probe --capture"});
  };
  for (const PlatformProbe& probe : platform.probes) once("probe " + probe.platform);
  for (const DeviceInfo& device : platform.devices)
    once(fmt::format("device {} {}", device.platform, device.index));
  for (const AttentionRow& row : platform.rows) once("row " + row.name);
}

}  // namespace

Json ToJson(const Platform& platform) {
  Json json = {{"apiVersion", kApiVersion[0]},
               {"kind", kKind[0]},
               {"version", kVersion},
               {"name", platform.name}};
  json["probes"] = Json::array();
  for (const PlatformProbe& probe : platform.probes) json["probes"].push_back(ToJson(probe));
  json["devices"] = Json::array();
  for (const DeviceInfo& device : platform.devices) json["devices"].push_back(ToJson(device));
  json["rows"] = Json::array();
  for (const AttentionRow& row : platform.rows) json["rows"].push_back(ToJson(row));
  return json;
}

Result<Platform> PlatformFromJson(const Json& json, std::string_view place_view) {
  const std::string place(place_view);
  if (std::optional<Problem> problem = CheckVersion(json, place)) return *std::move(problem);
  Problems problems;
  JsonObject object(json, place, kPlatformKeys, problems);
  object.Word("apiVersion", kApiVersion);
  object.Word("kind", kKind);
  Platform platform;
  platform.name = object.Text("name");
  for (const Json& probe : object.List("probes")) {
    if (problems.size() >= kMostProblems) break;
    std::string at = fmt::format("{}[{}]", object.At("probes"), platform.probes.size());
    platform.probes.push_back(ReadProbe(probe, at, problems));
  }
  for (const Json& device : object.List("devices")) {
    if (problems.size() >= kMostProblems) break;
    std::string at = fmt::format("{}[{}]", object.At("devices"), platform.devices.size());
    platform.devices.push_back(ReadDevice(device, at, problems));
  }
  size_t index = 0;
  for (const Json& json_row : object.List("rows")) {
    if (problems.size() >= kMostProblems) break;
    Result<AttentionRow> row =
        AttentionRowFromJson(json_row, fmt::format("{}[{}]", object.At("rows"), index++));
    if (row.ok())
      platform.rows.push_back(*std::move(row));
    else
      problems.insert(problems.end(), row.problems().begin(), row.problems().end());
  }
  if (problems.empty()) RefuseRepeats(platform, place, problems);
  if (problems.size() > kMostProblems) problems.resize(kMostProblems);
  if (!problems.empty()) return problems;
  return platform;
}

}  // namespace ashlar
