// Files of machines with GPUs, for tests of probing.
#pragma once

#include <string>
#include <string_view>

#include "support/spec_fake_root.h"

namespace ashlar {

inline void AddPci(const FakeRoot& root, const std::string& address, std::string_view vendor,
                   std::string_view type) {
  root.Write("/sys/bus/pci/devices/" + address + "/vendor", std::string(vendor) + "\n");
  root.Write("/sys/bus/pci/devices/" + address + "/class", std::string(type) + "\n");
}

// A working machine with two NVIDIA GPUs.
inline void WriteNvidia(const FakeRoot& root) {
  AddPci(root, "0000:01:00.0", "0x10de", "0x030200");
  AddPci(root, "0000:02:00.0", "0x10de", "0x030200");
  root.Write("/proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27\n");
  root.Write("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: x\n");
  root.Write("/proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: x\n");
  for (const char* name : {"nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1", "nvidia-modeset"})
    root.Write(std::string("/dev/") + name, "");
}

inline std::string KfdNode(int node) {
  return "/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node);
}

inline void AddKfdNode(const FakeRoot& root, int node, std::string_view properties) {
  root.Write(KfdNode(node) + "/properties", properties);
}

inline void AddKfdMemory(const FakeRoot& root, int node, std::string_view bytes,
                         std::string_view heap = "1", int bank = 0) {
  const std::string at = KfdNode(node) + "/mem_banks/" + std::to_string(bank);
  root.Write(at + "/properties", "heap_type " + std::string(heap) + "\nsize_in_bytes " +
                                     std::string(bytes) + "\nflags 0\n");
}

inline constexpr std::string_view kBytesOfMi300x = "206158430208";

// A working machine with a processor node and two MI300X.
inline void WriteAmd(const FakeRoot& root) {
  AddPci(root, "0000:05:00.0", "0x1002", "0x120000");
  AddPci(root, "0000:06:00.0", "0x1002", "0x120000");
  AddKfdNode(root, 0, "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0\n");
  for (int node : {1, 2}) {
    AddKfdNode(root, node,
               "simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\ndevice_id 29857\n"
               "location_id " +
                   std::to_string(node == 1 ? 0x500 : 0x600) + "\nunique_id " +
                   std::to_string(node + 40) +
                   "\nhive_id 15188982192727901047\nnum_xcc 8\ndrm_render_minor " +
                   std::to_string(127 + node) + "\n");
    AddKfdMemory(root, node, kBytesOfMi300x);
    root.Write("/dev/dri/renderD" + std::to_string(127 + node), "");
  }
  root.Write("/dev/kfd", "");
  root.Write("/sys/module/amdgpu/version", "6.12.12\n");
}

}  // namespace ashlar
