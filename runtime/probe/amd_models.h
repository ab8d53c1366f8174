// AMD's names: instruction sets from the kernel's version numbers, products from PCI device ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "probe/platform.h"

namespace ashlar {

// 90402 -> gfx942, 90010 -> gfx90a: major * 10000 + minor * 100 + stepping; minor and stepping are
// one hexadecimal digit each. Empty when it is no such number.
std::optional<Capability> GfxCapability(int64_t gfx_target_version);

struct AmdModel {
  int first, last;         // PCI device ids
  int gfx_target_version;  // for kernels that do not state it
  std::string_view product;
};
const AmdModel* FindAmdModel(int64_t device_id);

}  // namespace ashlar
