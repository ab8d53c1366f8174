#include "probe/hip_runtime.h"

#include <fmt/format.h>

#include <cstring>

#include "probe/device_json.h"
#include "probe/vendor_library.h"

namespace ashlar {
namespace {

constexpr const char* kPlatform = "hip";
// The few declarations needed of the library's public interface. Device properties are not read:
// their layout changes between versions, and the kernel tells as much.
constexpr int kSuccess = 0;
constexpr int kNoDevice = 100;
constexpr const char* kKernelLog = "look for amdgpu and kfd lines in the node's kernel log";

// The functions used. Those marked optional may be null.
struct Hip {
  explicit Hip(const VendorLibrary& library)
      : init(library.Find<int(unsigned)>("hipInit")),
        count(library.Find<int(int*)>("hipGetDeviceCount")),
        pci(library.Find<int(char*, int, int)>("hipDeviceGetPCIBusId")),
        version(library.Find<int(int*)>("hipRuntimeGetVersion")),
        error_name(library.Find<const char*(int)>("hipGetErrorName")) {}

  const char* Missing() const {
    if (init == nullptr) return "hipInit";
    if (count == nullptr) return "hipGetDeviceCount";
    return pci == nullptr ? "hipDeviceGetPCIBusId" : nullptr;
  }
  std::string ErrorText(int code) const {
    const char* name = error_name == nullptr ? nullptr : error_name(code);
    if (name == nullptr) return fmt::format("error {}", code);
    return fmt::format("{} ({})", PlainText({name, strnlen(name, 96)}), code);
  }
  // " (HIP 6.4)", from major * 10000000 + minor * 100000 + patch.
  std::string VersionText() const {
    int value = 0;
    if (version == nullptr || version(&value) != kSuccess || value < 10'000'000) return "";
    return fmt::format(" (HIP {}.{})", value / 10'000'000, value / 100'000 % 100);
  }

  int (*init)(unsigned);
  int (*count)(int*);
  int (*pci)(char*, int, int);
  int (*version)(int*);            // optional
  const char* (*error_name)(int);  // optional
};

Accelerators NothingVisible(const Accelerators& seen) {
  return WithoutDevices(
      kPlatform, ProbeOutcome::kNoAccess,
      fmt::format("{} GPUs, none of them visible to this process", seen.devices.size()),
      "name one in ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES, or unset both");
}

// "0000:63:00" without the function, which the runtime and the kernel write differently for
// partitions; "" when the runtime does not tell.
std::string CardOf(const Hip& hip, int index) {
  char text[64] = {};
  if (hip.pci(text, sizeof text, index) != kSuccess) return "";
  std::string card = PlainText({text, strnlen(text, sizeof text)});
  return card.substr(0, card.find('.'));
}

// Takes the first device on the card. The partitions of a card are alike, and both sides list them
// in one order.
std::optional<DeviceInfo> Take(std::vector<DeviceInfo>& devices, const std::string& card) {
  for (auto device = devices.begin(); device != devices.end(); ++device) {
    if (device->id.substr(0, device->id.find('.')) != card) continue;
    DeviceInfo taken = std::move(*device);
    devices.erase(device);
    return taken;
  }
  return std::nullopt;
}

Accelerators List(const Hip& hip, int count, const Accelerators& seen) {
  const std::string version = hip.VersionText();
  std::vector<DeviceInfo> left = seen.devices;
  std::vector<std::string> unknown;
  Accelerators found = seen;
  found.devices.clear();
  for (int index = 0; index < count; ++index) {
    const std::string card = CardOf(hip, index);
    std::optional<DeviceInfo> device = Take(left, card);
    if (!device) {
      unknown.push_back(fmt::format("HIP device {} ({})", index, card));
      continue;
    }
    device->index = index;
    device->memory_space = fmt::format("hip:{}", index);
    device->driver += version;
    found.devices.push_back(*std::move(device));
  }
  found.probe.detail += fmt::format("; the runtime{} shows {} devices", version, count);
  if (!unknown.empty())
    found.probe.detail += "; not among the usable ones of KFD: " + FirstOf(unknown);
  if (found.devices.empty()) {
    found.probe.outcome = ProbeOutcome::kBroken;
    found.probe.next = kKernelLog;
  }
  return found;
}

}  // namespace

Accelerators AskHipRuntime(const std::vector<std::string>& libraries, const Accelerators& seen) {
  std::string missing;
  for (const std::string& name : libraries) {
    const VendorLibrary library(name);
    if (library.missing()) {
      missing += (missing.empty() ? "" : ", ") + name;
      continue;
    }
    if (!library.loaded())
      return WithoutDevices(kPlatform, ProbeOutcome::kBroken, library.error(),
                            "install ROCm in the image again");
    const Hip hip(library);
    if (const char* symbol = hip.Missing(); symbol != nullptr)
      return WithoutDevices(kPlatform, ProbeOutcome::kBroken,
                            fmt::format("{} has no {}", name, symbol),
                            "install a newer ROCm in the image");
    int code = hip.init(0), count = 0;
    if (code == kSuccess) code = hip.count(&count);
    if (code == kNoDevice || (code == kSuccess && count == 0)) return NothingVisible(seen);
    if (code != kSuccess)
      return WithoutDevices(kPlatform, ProbeOutcome::kBroken,
                            fmt::format("hipInit: {}", hip.ErrorText(code)), kKernelLog);
    if (count < 0 || count > kMaxDevices)
      return WithoutDevices(kPlatform, ProbeOutcome::kBroken,
                            fmt::format("the runtime counts {} devices", count), kKernelLog);
    return List(hip, count, seen);
  }
  return WithoutDevices(kPlatform, ProbeOutcome::kNoDriver,
                        fmt::format("no HIP runtime: {}", missing),
                        "install the HIP runtime of ROCm in the image");
}

}  // namespace ashlar
