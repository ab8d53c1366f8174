#include "probe/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "probe/device_json.h"
#include "probe/root_files.h"

namespace ashlar {
namespace {

// The few declarations needed of the library's public interface.
constexpr int kSuccess = 0;
constexpr int kUncorrected = 1;  // nvmlMemoryErrorType_t
constexpr int kVolatile = 0;     // nvmlEccCounterType_t: since the driver was loaded
constexpr unsigned kMigOn = 1;
constexpr unsigned kMostInstances = 64;  // of one GPU; there are at most 7
struct MemoryInfo {
  unsigned long long total, free, used;
};

}  // namespace

Nvml::Nvml(const std::string& library) : library_(library) {
  auto* init = library_.Find<int()>("nvmlInit_v2");
  ready_ = init != nullptr && init() == kSuccess;
}

std::string Nvml::DriverVersion() const {
  auto* version = library_.Find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  char text[96] = {};
  if (!ready_ || version == nullptr || version(text, sizeof text) != kSuccess) return "";
  return PlainText({text, strnlen(text, sizeof text)});
}

std::optional<Nvml::Device> Nvml::Find(const std::string& id) const {
  auto* by_uuid = library_.Find<int(const char*, Handle*)>("nvmlDeviceGetHandleByUUID");
  if (!ready_ || by_uuid == nullptr) return std::nullopt;
  for (const char* prefix : {"GPU-", "MIG-"}) {
    Device device;
    Handle handle = nullptr;
    device.uuid = prefix + id;
    if (by_uuid(device.uuid.c_str(), &handle) != kSuccess) continue;
    auto* memory = library_.Find<int(Handle, MemoryInfo*)>("nvmlDeviceGetMemoryInfo");
    MemoryInfo info = {};
    if (memory != nullptr && memory(handle, &info) == kSuccess && info.free <= INT64_MAX)
      device.free_bytes = static_cast<int64_t>(info.free);
    // Errors are counted for the whole GPU.
    auto* parent =
        library_.Find<int(Handle, Handle*)>("nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    Handle whole = nullptr;
    const bool part = parent != nullptr && parent(handle, &whole) == kSuccess;
    device.fault = Fault(part ? whole : handle);
    return device;
  }
  return std::nullopt;
}

std::string Nvml::Fault(Handle device) const {
  auto* errors =
      library_.Find<int(Handle, int, int, unsigned long long*)>("nvmlDeviceGetTotalEccErrors");
  unsigned long long count = 0;
  if (errors != nullptr && errors(device, kUncorrected, kVolatile, &count) == kSuccess && count > 0)
    return fmt::format("{} uncorrectable ECC errors since the driver was loaded", count);
  auto* pages = library_.Find<int(Handle, unsigned*)>("nvmlDeviceGetRetiredPagesPendingStatus");
  unsigned pending = 0;
  if (pages != nullptr && pages(device, &pending) == kSuccess && pending != 0)
    return "memory pages wait to be retired";
  auto* rows = library_.Find<int(Handle, unsigned*, unsigned*, unsigned*, unsigned*)>(
      "nvmlDeviceGetRemappedRows");
  unsigned corrected = 0, uncorrected = 0, waiting = 0, failed = 0;
  if (rows == nullptr || rows(device, &corrected, &uncorrected, &waiting, &failed) != kSuccess)
    return "";
  if (failed != 0) return "a memory row could not be remapped";
  return waiting != 0 ? "memory rows wait to be remapped" : "";
}

int Nvml::Instances(Handle device) const {
  auto* most = library_.Find<int(Handle, unsigned*)>("nvmlDeviceGetMaxMigDeviceCount");
  auto* get = library_.Find<int(Handle, unsigned, Handle*)>("nvmlDeviceGetMigDeviceHandleByIndex");
  unsigned count = 0;
  if (most == nullptr || get == nullptr || most(device, &count) != kSuccess) return 0;
  int instances = 0;
  for (unsigned i = 0; i < std::min(count, kMostInstances); ++i) {
    Handle instance = nullptr;
    if (get(device, i, &instance) == kSuccess) ++instances;
  }
  return instances;
}

Nvml::Inventory Nvml::Count() const {
  Inventory inventory;
  auto* count = library_.Find<int(unsigned*)>("nvmlDeviceGetCount_v2");
  auto* by_index = library_.Find<int(unsigned, Handle*)>("nvmlDeviceGetHandleByIndex_v2");
  auto* mode = library_.Find<int(Handle, unsigned*, unsigned*)>("nvmlDeviceGetMigMode");
  unsigned gpus = 0;
  if (!ready_ || count == nullptr || count(&gpus) != kSuccess) return inventory;
  inventory.gpus = static_cast<int>(std::min<unsigned>(gpus, kMaxDevices));
  if (by_index == nullptr || mode == nullptr) return inventory;
  for (int i = 0; i < inventory.gpus; ++i) {
    Handle device = nullptr;
    unsigned current = 0, pending = 0;
    if (by_index(static_cast<unsigned>(i), &device) != kSuccess ||
        mode(device, &current, &pending) != kSuccess || current != kMigOn)
      continue;
    ++inventory.with_mig;
    inventory.instances += Instances(device);
  }
  return inventory;
}

}  // namespace ashlar
