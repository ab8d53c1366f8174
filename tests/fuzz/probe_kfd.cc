// A KFD tree and its neighbours from anybody: the input is the text of kFiles, one after another,
// with a byte 0xff between them. An empty text is no file, one that begins with 0xfe a link to
// itself.
#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/check.h"
#include "probe/accelerators.h"
#include "probe/device_json.h"
#include "support/spec_fake_root.h"

namespace ashlar {
namespace {

#define NODES "/sys/class/kfd/kfd/topology/nodes/"
#define CARD "/sys/bus/pci/devices/0000:05:00.0/"
constexpr std::array<const char*, 14> kFiles = {
    NODES "1/properties",
    NODES "1/mem_banks/0/properties",
    NODES "1/mem_banks/0/used_memory",
    NODES "1/mem_banks/1/properties",
    NODES "2/properties",
    NODES "2/mem_banks/0/properties",
    NODES "10/properties",
    CARD "product_name",
    CARD "current_memory_partition",
    CARD "mem_info_vram_total",
    CARD "mem_info_vram_used",
    CARD "ras/umc_err_count",
    CARD "ras/gpu_vram_bad_pages",
    "/sys/module/amdgpu/version",
};

// The tree stays between inputs; files that are the same are left alone.
class Tree {
 public:
  Tree() {
    root_.Write("/dev/kfd", "");
    for (const char* render : {"0", "128", "129"})
      root_.Write(std::string("/dev/dri/renderD") + render, "");
    root_.Write(CARD "vendor", "0x1002\n");
    root_.Write(CARD "class", "0x120000\n");
  }
  void Set(size_t file, std::string_view text) {
    if (texts_[file] == text) return;
    texts_[file] = text;
    root_.Remove(kFiles[file]);
    if (text.starts_with('\xfe'))
      root_.MakeLoop(kFiles[file]);
    else if (!text.empty())
      root_.Write(kFiles[file], text);
  }
  RootFiles files() const { return RootFiles(root_.path()); }

 private:
  FakeRoot root_;
  std::array<std::string, kFiles.size()> texts_;
};

void CheckAnswer(const Accelerators& answer) {
  const PlatformProbe& probe = answer.probe;
  const bool found = probe.outcome == ProbeOutcome::kFound;
  Check(probe.platform == "hip" && !probe.detail.empty(), "an outcome says what was seen");
  Check(probe.detail.size() < 2000 && probe.next.size() < 300, "a message stays short");
  Check(found == !answer.devices.empty(), "found means a device");
  Check(found || probe.outcome == ProbeOutcome::kAbsent || !probe.next.empty(),
        "and all else what to do");
  std::set<int> indexes;
  for (const DeviceInfo& device : answer.devices) {
    Check(indexes.insert(device.index).second, "each device has its own number");
    Check(device.capability.unit == CapabilityUnit::kGfx && device.capability.value > 0 &&
              device.capability.names.front().starts_with("gfx"),
          "each has an instruction set");
    Check(device.memory_bytes > 0 && device.free_bytes >= 0 &&
              device.free_bytes <= device.memory_bytes,
          "and memory");
    Problems problems;
    Result<Json> json = ParseJson(ToJson(device).dump(), "device");
    Check(json.ok() && ReadDevice(*json, "device", problems) == device && problems.empty(),
          "a device can be captured");
  }
}

}  // namespace
}  // namespace ashlar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  static Tree tree;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  for (size_t file = 0; file < kFiles.size(); ++file) {
    const size_t end = std::min(input.find('\xff'), input.size());
    tree.Set(file, input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  CheckAnswer(ProbeAmdFiles(tree.files()));
  return 0;
}
