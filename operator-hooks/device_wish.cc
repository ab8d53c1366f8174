#include "operator-hooks/device_wish.h"

#include <algorithm>

namespace ashlar::hooks {
namespace {

// Of a claim that names a device class: the vendors' drivers call theirs gpu.nvidia.com and
// gpu.amd.com.
bool ClaimsAmd(const Accelerator::Claim& claim) {
  auto amd = [](const DeviceRequest& request) { return request.device_class.ends_with("amd.com"); };
  return (claim.exact && amd(*claim.exact)) ||
         std::any_of(claim.first_available.begin(), claim.first_available.end(), amd);
}

std::string VendorOf(const Accelerator& accelerator, const std::string& platform) {
  if (!accelerator.vendor.empty() && accelerator.vendor != "auto") return accelerator.vendor;
  if (accelerator.resource_name.starts_with("amd.com/")) return "amd";
  if (!accelerator.resource_name.empty()) return "nvidia";
  if (platform == "cuda") return "nvidia";
  if (platform == "hip") return "amd";
  if (accelerator.claim.present()) return ClaimsAmd(accelerator.claim) ? "amd" : "nvidia";
  return "cpu";
}

}  // namespace

std::string_view PlatformName(std::string_view vendor) {
  if (vendor == "nvidia") return "cuda";
  return vendor == "amd" ? "hip" : "cpu";
}

DeviceWish DevicesOf(const Wishes& wishes, const Spec& spec) {
  const Accelerator& accelerator = wishes.accelerator;
  DeviceWish wish;
  wish.vendor = VendorOf(accelerator, spec.platform);
  wish.pods = wishes.leader_worker_set ? spec.parallel.pipeline : 1;
  if (wish.vendor == "cpu") return wish;
  const int64_t all =
      accelerator.count.value_or(int64_t{spec.parallel.tensor} * spec.parallel.pipeline);
  wish.per_pod = std::max<int64_t>(all / wish.pods, 1);
  if (accelerator.claim.present()) return wish;
  wish.resource = accelerator.resource_name;
  if (wish.resource.empty())
    wish.resource = wish.vendor == "amd" ? "amd.com/gpu" : "nvidia.com/gpu";
  return wish;
}

}  // namespace ashlar::hooks
