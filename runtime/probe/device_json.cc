#include "probe/device_json.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "probe/json_object.h"

namespace ashlar {
namespace {

constexpr int64_t kAnyBytes = int64_t{1} << 60;
constexpr std::array<std::string_view, 4> kProbeKeys = {"platform", "outcome", "detail", "next"};
constexpr std::array<std::string_view, 17> kDeviceKeys = {
    "platform",  "index",     "product",      "capability",  "id",          "driver",
    "partition", "link",      "computeUnits", "memorySpace", "memoryBytes", "freeBytes",
    "threads",   "numaNodes", "l1dBytes",     "l2Bytes",     "l3Bytes"};
constexpr std::array<std::string_view, 3> kCapabilityKeys = {"unit", "value", "names"};
const std::array<std::string, 5> kPlatforms = {"cuda", "hip", "cpu", "reference", "xpu"};
const std::array<std::string, 5> kOutcomes = {"found", "absent", "noDriver", "noAccess", "broken"};
const std::array<std::string, 4> kUnits = {"any", "cuda", "gfx", "cpu"};

// Position of a word that JsonObject::Word has accepted; 0 for the "" of a refused one.
template <size_t N>
size_t IndexOf(const std::array<std::string, N>& words, const std::string& word) {
  for (size_t i = 0; i < N; ++i) {
    if (words[i] == word) return i;
  }
  return 0;
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

}  // namespace

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
          {"id", device.id},
          {"driver", device.driver},
          {"partition", device.partition},
          {"link", device.link},
          {"computeUnits", device.compute_units},
          {"memorySpace", device.memory_space},
          {"memoryBytes", device.memory_bytes},
          {"freeBytes", device.free_bytes},
          {"threads", device.threads},
          {"numaNodes", device.numa_nodes},
          {"l1dBytes", device.l1d_bytes},
          {"l2Bytes", device.l2_bytes},
          {"l3Bytes", device.l3_bytes}};
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

DeviceInfo ReadDevice(const Json& json, const std::string& place, Problems& problems) {
  JsonObject object(json, place, kDeviceKeys, problems);
  DeviceInfo device;
  device.platform = object.Word("platform", kPlatforms);
  device.index = static_cast<int>(object.Number("index", kMaxDevices - 1));
  device.product = object.Text("product");
  if (const Json* capability = object.Find("capability"))
    device.capability = ReadCapability(*capability, object.At("capability"), problems);
  device.id = object.Text("id");
  device.driver = object.Text("driver");
  device.partition = object.Text("partition");
  device.link = object.Text("link");
  device.compute_units = static_cast<int>(object.Number("computeUnits", 65'536));
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

}  // namespace ashlar
