// What /proc and /sys say of the processors, limits of the process apart.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probe/platform.h"
#include "probe/root_files.h"

namespace ashlar {

using CpuSet = std::bitset<8192>;

// "0-3,8"; empty when it is no such list.
std::optional<CpuSet> ParseCpuList(std::string_view text);

struct CpuFacts {
  std::string product;
  Capability capability;
  CpuSet allowed;  // online, and in the affinity mask of this process
  int numa_nodes = 1;
  int64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // one instance each; 0: not known
};
CpuFacts ReadCpuFacts(const RootFiles& files);

// Instruction sets by the kernel's flags, which leave out what the kernel has not switched on.
Capability CpuCapability(std::string_view flags);
// Names of CpuIsa bits.
std::vector<std::string> IsaNames(uint32_t bits);

}  // namespace ashlar
