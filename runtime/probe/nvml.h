// What NVIDIA's management library tells of a GPU, or of a MIG instance of one, by its UUID. Every
// answer may be missing: the library, a symbol of it, or the driver's will to answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "probe/vendor_library.h"

namespace ashlar {

class Nvml {
 public:
  explicit Nvml(const std::string& library);

  std::string DriverVersion() const;  // "580.65.06"

  struct Device {
    std::string uuid;  // "GPU-...", "MIG-..."
    std::optional<int64_t> free_bytes;
    std::string fault;  // why the GPU may not be used: "1 uncorrectable ECC error ..."
  };
  // `id` is a UUID without its prefix.
  std::optional<Device> Find(const std::string& id) const;

  // Of the whole machine or container, whatever this process may use.
  struct Inventory {
    int gpus = 0;
    int with_mig = 0;   // GPUs in MIG mode
    int instances = 0;  // on those
  };
  Inventory Count() const;

 private:
  using Handle = void*;

  std::string Fault(Handle device) const;
  int Instances(Handle device) const;

  VendorLibrary library_;
  bool ready_ = false;
};

}  // namespace ashlar
