// The machines that planning knows by name; internal to profiles.cc. Memory and unit counts are
// those of the vendors' public specifications.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "probe/platform.h"

namespace ashlar {

struct HostProfile {
  std::string_view cpu;
  uint32_t isa;  // CpuIsa bits; 0 on Arm
  int threads, numa_nodes;
  int64_t memory_bytes, l1d_bytes, l2_bytes, l3_bytes;
};

// A machine with one accelerator, or with none when `platform` is "".
struct Profile {
  std::string_view name;
  std::array<std::string_view, 3> aliases;
  const HostProfile* host;
  std::string_view platform, product;
  CapabilityUnit unit;
  uint32_t capability;
  std::string_view capability_name;
  int compute_units;
  int64_t memory_bytes, free_bytes;  // free before anything runs
};

namespace profile_table {

constexpr int64_t kKiB = 1 << 10;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kGiB = 1 << 30;

constexpr uint32_t kIsaAvx512 = kAvx2 | kAvx512 | kAvx512Vnni | kAvx512Bf16;
constexpr uint32_t kIsaAmx = kIsaAvx512 | kAmx | kAvxVnni;

constexpr HostProfile Avx2Host(int threads, int numa_nodes, int64_t memory) {
  return {"AMD EPYC 7763", kAvx2, threads, numa_nodes, memory, 32 * kKiB, 512 * kKiB, 32 * kMiB};
}
constexpr HostProfile Avx512Host(int threads, int numa_nodes, int64_t memory) {
  return {"AMD EPYC 9654", kIsaAvx512, threads, numa_nodes, memory, 32 * kKiB, 1 * kMiB, 32 * kMiB};
}
constexpr HostProfile AmxHost(int threads, int numa_nodes, int64_t memory) {
  return {"Intel Xeon Platinum 8480",
          kIsaAmx,
          threads,
          numa_nodes,
          memory,
          48 * kKiB,
          2 * kMiB,
          105 * kMiB};
}

inline constexpr HostProfile kAvx2Server = Avx2Host(32, 2, 256 * kGiB);
inline constexpr HostProfile kAvx512Server = Avx512Host(48, 2, 256 * kGiB);
inline constexpr HostProfile kAmxServer = AmxHost(48, 2, 256 * kGiB);
inline constexpr HostProfile kAvx2Node = Avx2Host(16, 1, 64 * kGiB);
inline constexpr HostProfile kAvx512Node = Avx512Host(16, 1, 64 * kGiB);
inline constexpr HostProfile kAmxNode = AmxHost(16, 1, 64 * kGiB);
inline constexpr HostProfile kDesktop = {"AMD Ryzen 9 7950X", kIsaAvx512, 32,       1,
                                         64 * kGiB,           32 * kKiB,  1 * kMiB, 32 * kMiB};
inline constexpr HostProfile kGraceBlackwell = {"NVIDIA GB10 Arm", 0,         20,       1,
                                                119 * kGiB,        64 * kKiB, 2 * kMiB, 16 * kMiB};
// What the graphics part does not take of 128 GiB.
inline constexpr HostProfile kStrixHalo = {
    "AMD Ryzen AI Max+ 395", kIsaAvx512, 32, 1, 32 * kGiB, 48 * kKiB, 1 * kMiB, 32 * kMiB};

constexpr auto kCuda = CapabilityUnit::kCuda;
constexpr auto kGfx = CapabilityUnit::kGfx;
constexpr auto kAny = CapabilityUnit::kAny;

// clang-format off
inline constexpr std::array<Profile, 16> kProfiles = {{
    {"h100", {}, &kAmxServer, "cuda", "NVIDIA H100 80GB HBM3", kCuda, 90, "9.0", 132,
     81559 * kMiB, 81000 * kMiB},
    {"h200", {}, &kAmxServer, "cuda", "NVIDIA H200", kCuda, 90, "9.0", 132,
     143771 * kMiB, 143100 * kMiB},
    {"b200", {}, &kAmxServer, "cuda", "NVIDIA B200", kCuda, 100, "10.0", 148,
     183359 * kMiB, 182600 * kMiB},
    {"rtx-4090", {"rtx4090", "4090"}, &kDesktop, "cuda", "NVIDIA GeForce RTX 4090", kCuda, 89,
     "8.9", 128, 24564 * kMiB, 24100 * kMiB},
    {"rtx-5090", {"rtx5090", "5090"}, &kDesktop, "cuda", "NVIDIA GeForce RTX 5090", kCuda, 120,
     "12.0", 170, 32607 * kMiB, 32100 * kMiB},
    // One memory of 128 GB for both sides.
    {"gb10", {"dgx-spark"}, &kGraceBlackwell, "cuda", "NVIDIA GB10", kCuda, 121, "12.1", 48,
     119 * kGiB, 112 * kGiB},
    {"mi210", {}, &kAvx2Server, "hip", "AMD Instinct MI210", kGfx, 0x90a, "gfx90a", 104,
     64 * kGiB, 63 * kGiB},
    {"mi300x", {}, &kAvx512Server, "hip", "AMD Instinct MI300X", kGfx, 0x942, "gfx942", 304,
     192 * kGiB, 191 * kGiB},
    {"mi325x", {}, &kAvx512Server, "hip", "AMD Instinct MI325X", kGfx, 0x942, "gfx942", 304,
     256 * kGiB, 255 * kGiB},
    {"mi355x", {}, &kAvx512Server, "hip", "AMD Instinct MI355X", kGfx, 0x950, "gfx950", 256,
     288 * kGiB, 287 * kGiB},
    {"rx-7900", {"rx7900", "rx-7900-xtx", "gfx1100"}, &kDesktop, "hip", "AMD Radeon RX 7900 XTX",
     kGfx, 0x1100, "gfx1100", 96, 24 * kGiB, 24300 * kMiB},
    {"strix-halo", {"strixhalo", "gfx1151"}, &kStrixHalo, "hip", "AMD Radeon 8060S", kGfx, 0x1151,
     "gfx1151", 40, 96 * kGiB, 95 * kGiB},
    {"xpu", {"max-1550"}, &kAmxServer, "xpu", "Intel Data Center GPU Max 1550", kAny, 0, "xe-hpc",
     128, 128 * kGiB, 127 * kGiB},
    {"cpu-avx2", {}, &kAvx2Node, "", "", kAny, 0, "", 0, 0, 0},
    {"cpu-avx512", {}, &kAvx512Node, "", "", kAny, 0, "", 0, 0, 0},
    {"cpu-amx", {}, &kAmxNode, "", "", kAny, 0, "", 0, 0, 0},
}};
// clang-format on

}  // namespace profile_table
}  // namespace ashlar
