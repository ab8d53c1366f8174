#include "probe/amd_models.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace ashlar {
namespace {

// Ranges of the public PCI id list. Kernels before 5.16 leave the version to whoever knows the id.
constexpr std::array<AmdModel, 17> kModels = {{
    {0x6860, 0x687f, 90000, "AMD Radeon Vega 10"},
    {0x69a0, 0x69af, 90004, "AMD Radeon Vega 12"},
    {0x66a0, 0x66af, 90006, "AMD Radeon Vega 20"},
    {0x7310, 0x731f, 100100, "AMD Radeon RX 5700"},
    {0x7388, 0x7390, 90008, "AMD Instinct MI100"},
    {0x73a0, 0x73bf, 100300, "AMD Radeon RX 6800"},
    {0x7408, 0x740c, 90010, "AMD Instinct MI250"},
    {0x740f, 0x7410, 90010, "AMD Instinct MI210"},
    {0x7448, 0x744c, 110000, "AMD Radeon RX 7900"},
    {0x74a0, 0x74a0, 90402, "AMD Instinct MI300A"},
    {0x74a1, 0x74a1, 90402, "AMD Instinct MI300X"},
    {0x74a2, 0x74a2, 90402, "AMD Instinct MI308X"},
    {0x74a5, 0x74a5, 90402, "AMD Instinct MI325X"},
    {0x75a0, 0x75a0, 90500, "AMD Instinct MI350X"},
    {0x75a3, 0x75a3, 90500, "AMD Instinct MI355X"},
    {0x1586, 0x1586, 110501, "AMD Radeon 8060S"},
    {0x7550, 0x7550, 120001, "AMD Radeon RX 9070"},
}};

}  // namespace

std::optional<Capability> GfxCapability(int64_t version) {
  const int64_t major = version / 10'000, minor = version / 100 % 100, stepping = version % 100;
  if (version <= 0 || major < 1 || major > 99 || minor > 15 || stepping > 15) return std::nullopt;
  const std::string digits = fmt::format("{}{:x}{:x}", major, minor, stepping);
  uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return Capability{CapabilityUnit::kGfx, value, {"gfx" + digits}};
}

const AmdModel* FindAmdModel(int64_t device_id) {
  for (const AmdModel& model : kModels) {
    if (device_id >= model.first && device_id <= model.last) return &model;
  }
  return nullptr;
}

}  // namespace ashlar
