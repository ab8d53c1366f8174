// The one device that a plan uses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/request.h"

namespace ashlar {

struct DeviceChoice {
  std::string platform;
  int device = -1;  // index into Platform::devices; -1: none
  Target target;
  std::vector<std::string> notes;  // what was passed over, and why
  Problem problem;                 // when there is none
};

// `asked` is auto or one platform, which must have a device and a row. Auto takes the first of
// cuda, hip, cpu and reference that has both; of several devices of one platform the one with the
// most free memory. A machine whose device is known to the reference catalogue alone (xpu) is
// refused.
DeviceChoice ChooseDevice(const Platform& platform, const std::string& asked,
                          const std::string& place);

// The same whatever plugins there are, xpu before cpu: what another engine would run on.
DeviceChoice ChooseAnyDevice(const Platform& platform, const std::string& asked,
                             const std::string& place);

// Index of the device that carries out this platform's rows, or -1.
int DeviceOf(const Platform& platform, std::string_view name);

// What was found out about one platform; null: it was not probed.
const PlatformProbe* FindProbe(const Platform& platform, std::string_view name);

// Type of q and of the residual stream on this platform.
DType ActivationDType(const std::string& platform, DType weights);

// KV type when the spec says auto: float32 on reference, and on cpu beside float32 weights, for the
// truth costs nothing more there; float16 beside float16 weights on a GPU; else bfloat16.
DType AutomaticKvDType(const std::string& platform, DType weights);

}  // namespace ashlar
