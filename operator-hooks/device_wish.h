// Which devices a model's pods ask for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "operator-hooks/inference_model.h"
#include "spec/spec.h"

namespace ashlar::hooks {

struct DeviceWish {
  std::string vendor;    // nvidia, amd or cpu
  std::string resource;  // extended resource; "" for cpu and for claims
  int64_t per_pod = 0;   // devices
  int64_t pods = 1;      // of one replica
};

// Explicit answers first: the vendor, the resource's prefix, the model's platform, the claim's
// device class. A model that asks for no device gets none.
DeviceWish DevicesOf(const Wishes& wishes, const Spec& spec);

// What the planner calls a vendor: "cuda", "hip", "cpu".
std::string_view PlatformName(std::string_view vendor);

}  // namespace ashlar::hooks
