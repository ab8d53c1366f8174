// The topology of the kernel fusion driver (KFD): one node for each processor socket, and for each
// GPU or partition of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/platform.h"
#include "probe/root_files.h"

namespace ashlar {

inline constexpr const char* kKfdNodes = "/sys/class/kfd/kfd/topology/nodes";

// What the kernel leaves out, or states as no number, is empty, 0 or "".
struct KfdGpu {
  std::string node;                      // its directory: "7"
  std::optional<Capability> capability;  // by gfx_target_version, else by the device id
  std::string product;
  std::string pci;           // "0000:63:00.0"; partitions of a card share it
  std::string partition;     // "CPX partition 3, NPS1"; "" for a whole card
  std::string link;          // "xgmi:<hive>"
  int64_t render_minor = 0;  // /dev/dri/renderD<minor>
  int compute_units = 0;     // simd_count / simd_per_cu
  int64_t memory_bytes = 0;  // of the banks in local memory
  std::optional<int64_t> used_bytes;
};

struct KfdTopology {
  bool present = false;
  int hidden = 0;  // nodes whose properties may not be read: the device cgroup forbids the GPU
  std::vector<KfdGpu> gpus;  // in the order of their nodes
};
KfdTopology ReadKfdTopology(const RootFiles& files);

// Why the card may not be used, or "": uncorrectable memory errors since the driver was loaded, or
// memory pages that wait for a reset to be retired.
std::string AmdFault(const RootFiles& files, const std::string& pci);

}  // namespace ashlar
