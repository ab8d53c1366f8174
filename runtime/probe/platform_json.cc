// The captured form of a platform.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <set>

#include "probe/json_object.h"
#include "probe/platform.h"

namespace ashlar {
namespace {

constexpr int64_t kAnyBytes = int64_t{1} << 60;
constexpr std::array<std::string_view, 6> kPlatformKeys = {"apiVersion", "kind",    "name",
                                                           "probes",     "devices", "rows"};
constexpr std::array<std::string_view, 4> kProbeKeys = {"platform", "outcome", "detail", "next"};
constexpr std::array<std::string_view, 12> kDeviceKeys = {
    "platform",  "index",   "product",   "capability", "memorySpace", "memoryBytes",
    "freeBytes", "threads", "numaNodes", "l1dBytes",   "l2Bytes",     "l3Bytes"};
constexpr std::array<std::string_view, 3> kCapabilityKeys = {"unit", "value", "names"};
const std::array<std::string, 4> kPlatforms = {"cuda", "hip", "cpu", "reference"};
const std::array<std::string, 5> kOutcomes = {"found", "absent", "noDriver", "noAccess", "broken"};
const std::array<std::string, 4> kUnits = {"any", "cuda", "gfx", "cpu"};
const std::array<std::string, 1> kApiVersion = {"ashlar.dev/v1alpha1"};
const std::array<std::string, 1> kKind = {"Platform"};

// Position of a word that JsonObject::Word has accepted; 0 for the "" of a refused one.
template <size_t N>
size_t IndexOf(const std::array<std::string, N>& words, const std::string& word) {
  for (size_t i = 0; i < N; ++i) {
    if (words[i] == word) return i;
  }
  return 0;
}

PlatformProbe ReadProbe(const Json& json, const std::string& place, Problems& problems) {
  JsonObject object(json, place, kProbeKeys, problems);
  PlatformProbe probe;
  probe.platform = object.Word("platform", kPlatforms);
  probe.outcome = static_cast<ProbeOutcome>(IndexOf(kOutcomes, object.Word("outcome", kOutcomes)));
  probe.detail = object.Text("detail");
  probe.next = object.Text("next");
  return probe;
}

Capability ReadCapability(const Json& json, const std::string& place, Problems& problems) {
  JsonObject object(json, place, kCapabilityKeys, problems);
  Capability capability;
  capability.unit = static_cast<CapabilityUnit>(IndexOf(kUnits, object.Word("unit", kUnits)));
  capability.value =
      static_cast<uint32_t>(object.Number("value", std::numeric_limits<uint32_t>::max()));
  capability.names = object.Texts("names");
  return capability;
}

DeviceInfo ReadDevice(const Json& json, const std::string& place, Problems& problems) {
  JsonObject object(json, place, kDeviceKeys, problems);
  DeviceInfo device;
  device.platform = object.Word("platform", kPlatforms);
  device.index = static_cast<int>(object.Number("index", 4095));
  device.product = object.Text("product");
  if (const Json* capability = object.Find("capability"))
    device.capability = ReadCapability(*capability, object.At("capability"), problems);
  device.memory_space = object.Text("memorySpace");
  device.memory_bytes = object.Number("memoryBytes", kAnyBytes);
  device.free_bytes = object.Number("freeBytes", kAnyBytes);
  device.threads = static_cast<int>(object.Number("threads", 65'536));
  device.numa_nodes = static_cast<int>(object.Number("numaNodes", 4096));
  device.l1d_bytes = object.Number("l1dBytes", kAnyBytes);
  device.l2_bytes = object.Number("l2Bytes", kAnyBytes);
  device.l3_bytes = object.Number("l3Bytes", kAnyBytes);
  if (device.free_bytes > device.memory_bytes)
    object.Refuse("freeBytes", std::to_string(device.free_bytes),
                  fmt::format("at most memoryBytes, {}", device.memory_bytes));
  return device;
}

Json ToJson(const PlatformProbe& probe) {
  return {{"platform", probe.platform},
          {"outcome", std::string(Name(probe.outcome))},
          {"detail", probe.detail},
          {"next", probe.next}};
}

Json ToJson(const DeviceInfo& device) {
  return {{"platform", device.platform},
          {"index", device.index},
          {"product", device.product},
          {"capability",
           {{"unit", kUnits[static_cast<size_t>(device.capability.unit)]},
            {"value", device.capability.value},
            {"names", device.capability.names}}},
          {"memorySpace", device.memory_space},
          {"memoryBytes", device.memory_bytes},
          {"freeBytes", device.free_bytes},
          {"threads", device.threads},
          {"numaNodes", device.numa_nodes},
          {"l1dBytes", device.l1d_bytes},
          {"l2Bytes", device.l2_bytes},
          {"l3Bytes", device.l3_bytes}};
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
  Json json = {{"apiVersion", kApiVersion[0]}, {"kind", kKind[0]}, {"name", platform.name}};
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
  Problems problems;
  JsonObject object(json, place, kPlatformKeys, problems);
  object.Word("apiVersion", kApiVersion);
  object.Word("kind", kKind);
  Platform platform;
  platform.name = object.Text("name");
  for (const Json& probe : object.List("probes")) {
    std::string at = fmt::format("{}[{}]", object.At("probes"), platform.probes.size());
    platform.probes.push_back(ReadProbe(probe, at, problems));
  }
  for (const Json& device : object.List("devices")) {
    std::string at = fmt::format("{}[{}]", object.At("devices"), platform.devices.size());
    platform.devices.push_back(ReadDevice(device, at, problems));
  }
  size_t index = 0;
  for (const Json& json_row : object.List("rows")) {
    Result<AttentionRow> row =
        AttentionRowFromJson(json_row, fmt::format("{}[{}]", object.At("rows"), index++));
    if (row.ok())
      platform.rows.push_back(*std::move(row));
    else
      problems.insert(problems.end(), row.problems().begin(), row.problems().end());
  }
  if (problems.empty()) RefuseRepeats(platform, place, problems);
  if (!problems.empty()) return problems;
  return platform;
}

}  // namespace ashlar
