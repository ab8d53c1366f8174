#include "probe/cuda_driver.h"

#include <fmt/format.h>

#include <cstring>

#include "probe/root_files.h"

namespace ashlar {

CudaDriver::CudaDriver(const VendorLibrary& library)
    : init(library.Find<int(unsigned)>("cuInit")),
      version(library.Find<int(int*)>("cuDriverGetVersion")),
      count(library.Find<int(int*)>("cuDeviceGetCount")),
      get(library.Find<int(int*, int)>("cuDeviceGet")),
      name(library.Find<int(char*, int, int)>("cuDeviceGetName")),
      memory(library.Find<int(size_t*, int)>("cuDeviceTotalMem_v2")),
      attribute(library.Find<int(int*, int, int)>("cuDeviceGetAttribute")),
      uuid(library.Find<int(Uuid*, int)>("cuDeviceGetUuid_v2")),
      error_name(library.Find<int(int, const char**)>("cuGetErrorName")) {}

const char* CudaDriver::Missing() const {
  if (init == nullptr) return "cuInit";
  if (version == nullptr) return "cuDriverGetVersion";
  if (count == nullptr) return "cuDeviceGetCount";
  if (get == nullptr) return "cuDeviceGet";
  if (name == nullptr) return "cuDeviceGetName";
  if (memory == nullptr) return "cuDeviceTotalMem_v2";
  return attribute == nullptr ? "cuDeviceGetAttribute" : nullptr;
}

std::string CudaDriver::ErrorText(int code) const {
  const char* text = nullptr;
  const bool named = error_name != nullptr && error_name(code, &text) == kSuccess;
  if (!named || text == nullptr) return fmt::format("error {}", code);
  return fmt::format("{} ({})", PlainText({text, strnlen(text, 96)}), code);
}

}  // namespace ashlar
