#include "operator-hooks/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "base/checked.h"
#include "operator-hooks/children.h"
#include "operator-hooks/quantity.h"
#include "probe/profiles.h"

namespace ashlar::hooks {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGB = 1'000'000'000;
// Of a device's memory, what its driver keeps.
constexpr int64_t kDriverShare = 64;

struct KnownProduct {
  std::string_view part;  // of the label's value
  std::string_view profile;
};
// Products whose label alone says what they can do.
constexpr std::array<KnownProduct, 4> kProducts = {
    {{"H100", "h100"}, {"H200", "h200"}, {"MI300X", "mi300x"}, {"MI210", "mi210"}}};

auto Key(const NodeKind& kind) {
  return std::tie(kind.product, kind.devices, kind.compute_capability, kind.device_bytes, kind.cpus,
                  kind.memory_bytes);
}

std::string Label(const std::map<std::string, std::string>& labels, const std::string& key) {
  auto found = labels.find(key);
  return found == labels.end() ? "" : found->second;
}

NodeKind ReadNode(const ObjectReader& node) {
  NodeKind kind;
  kind.count = 1;
  std::map<std::string, std::string> labels = node.Object("metadata").TextMap("labels");
  for (const auto& [resource, text] : node.Object("status").TextMap("allocatable")) {
    int64_t amount = ParseQuantity(text).value_or(0);
    if (resource == "cpu") kind.cpus = amount;
    if (resource == "memory") kind.memory_bytes = amount;
    bool device = resource.starts_with("nvidia.com/") || resource.starts_with("amd.com/");
    if (device && amount > 0) kind.devices[resource] = amount;
  }
  kind.product = Label(labels, "nvidia.com/gpu.product");
  if (kind.product.empty()) kind.product = Label(labels, "amd.com/gpu.product-name");
  std::string major = Label(labels, "nvidia.com/gpu.compute.major");
  std::string minor = Label(labels, "nvidia.com/gpu.compute.minor");
  if (!major.empty() && !minor.empty()) kind.compute_capability = major + "." + minor;
  int64_t mib = ParseQuantity(Label(labels, "nvidia.com/gpu.memory")).value_or(0);
  kind.device_bytes = CheckedMul(mib, kMiB).value_or(0);
  return kind;
}

// "nvidia.com/mig-1g.10gb": 10 GB. 0 for whole devices.
int64_t SliceBytes(const std::string& resource) {
  size_t dot = resource.rfind('.');
  if (resource.find("/mig-") == resource.npos || !resource.ends_with("gb")) return 0;
  int64_t size = 0;
  std::from_chars(resource.data() + dot + 1, resource.data() + resource.size() - 2, size);
  return std::clamp<int64_t>(size, 0, 4096) * kGB;
}

DeviceInfo* DeviceOfPlatform(Platform& platform, std::string_view name) {
  for (DeviceInfo& device : platform.devices) {
    if (device.platform == name) return &device;
  }
  return nullptr;
}

void SizeHost(Platform& platform, const NodeKind& kind) {
  for (DeviceInfo& device : platform.devices) {
    if (device.capability.unit != CapabilityUnit::kCpu) continue;
    if (kind.cpus > 0) device.threads = static_cast<int>(std::min<int64_t>(kind.cpus, 4096));
    if (kind.memory_bytes > 0) device.memory_bytes = device.free_bytes = kind.memory_bytes;
  }
}

std::optional<Platform> ProductPlatform(const std::string& product) {
  for (const KnownProduct& known : kProducts) {
    if (product.find(known.part) != product.npos) return FindProfile(known.profile);
  }
  return std::nullopt;
}

// A partitioned device is one of many of its node, and smaller than its product's name says.
bool Partitioned(const NodeKind& kind) {
  constexpr int64_t kWholeDevices = 8;
  auto devices = kind.devices.find("amd.com/gpu");
  return devices != kind.devices.end() && devices->second > kWholeDevices;
}

// "9.0" -> 90.
std::optional<uint32_t> Capability(const std::string& text) {
  unsigned major = 0, minor = 0;
  auto [dot, error] = std::from_chars(text.data(), text.data() + text.size(), major);
  if (error != std::errc() || dot == text.data() + text.size() || *dot != '.') return std::nullopt;
  std::from_chars(dot + 1, text.data() + text.size(), minor);
  if (major > 99 || minor > 9) return std::nullopt;
  return major * 10 + minor;
}

std::optional<Platform> NvidiaPlatform(const NodeKind& kind, const std::string& resource) {
  std::optional<Platform> platform = ProductPlatform(kind.product);
  std::optional<uint32_t> capability = Capability(kind.compute_capability);
  if (!platform && (!capability || kind.device_bytes == 0)) return std::nullopt;
  if (!platform) platform = FindProfile("h200");
  DeviceInfo* device = DeviceOfPlatform(*platform, "cuda");
  if (device == nullptr) return std::nullopt;
  device->product = kind.product;
  if (capability) {
    device->capability.value = *capability;
    device->capability.names = {kind.compute_capability};
  }
  int64_t bytes = SliceBytes(resource) > 0 ? SliceBytes(resource) : kind.device_bytes;
  if (bytes > 0) {
    device->memory_bytes = bytes;
    device->free_bytes = bytes - bytes / kDriverShare;
  }
  return platform;
}

}  // namespace

bool NodeKind::operator<(const NodeKind& other) const { return Key(*this) < Key(other); }

std::string NodeKind::Signature() const {
  std::string text = fmt::format("{};{};{};{};{};{}", count, product, compute_capability,
                                 device_bytes, cpus, memory_bytes);
  for (const auto& [resource, amount] : devices) text += fmt::format(";{}={}", resource, amount);
  return text + "\n";
}

std::string NodeKind::Name() const {
  if (!product.empty()) return product;
  return devices.empty() ? "cpu" : devices.begin()->first;
}

std::vector<NodeKind> ReadNodes(const ObjectReader& parent) {
  std::vector<NodeKind> kinds;
  for (const auto& [name, node] : parent.Object("related").Members(kNodes)) {
    NodeKind kind = ReadNode(node);
    auto same = std::find_if(kinds.begin(), kinds.end(),
                             [&](const NodeKind& other) { return Key(other) == Key(kind); });
    if (same == kinds.end()) {
      kinds.push_back(kind);
    } else {
      ++same->count;
    }
  }
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

std::optional<Platform> PlatformOf(const NodeKind& kind, const std::string& resource) {
  std::optional<Platform> platform;
  if (resource.empty()) {
    platform = FindProfile("cpu-avx2");
  } else if (resource.starts_with("nvidia.com/")) {
    platform = NvidiaPlatform(kind, resource);
  } else if (resource == "amd.com/gpu" && !Partitioned(kind)) {
    platform = ProductPlatform(kind.product);
  }
  if (!platform) return std::nullopt;
  platform->name = kind.Name();
  SizeHost(*platform, kind);
  return platform;
}

}  // namespace ashlar::hooks
