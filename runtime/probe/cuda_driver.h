// The functions used of NVIDIA's driver library, and the few declarations needed of its public
// interface. What a function writes counts only when it returned kSuccess.
#pragma once

#include <string>

#include "probe/vendor_library.h"

namespace ashlar {

struct CudaDriver {
  static constexpr int kSuccess = 0, kNoDevice = 100;
  enum Attribute { kMultiprocessors = 16, kIntegrated = 18, kMajor = 75, kMinor = 76 };
  struct Uuid {
    unsigned char bytes[16];
  };

  explicit CudaDriver(const VendorLibrary& library);

  // The first function that must be there and is not, or null.
  const char* Missing() const;
  std::string ErrorText(int code) const;  // "CUDA_ERROR_NO_DEVICE (100)"

  int (*init)(unsigned);
  int (*version)(int*);
  int (*count)(int*);
  int (*get)(int*, int);
  int (*name)(char*, int, int);
  int (*memory)(size_t*, int);
  int (*attribute)(int*, int, int);
  int (*uuid)(Uuid*, int);               // may be null
  int (*error_name)(int, const char**);  // may be null
};

}  // namespace ashlar
