// Topologies of real machines; tests/probe/kfd/README.md says whose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "probe/accelerators.h"
#include "probe/kfd.h"
#include "support/probe_machines.h"

namespace ashlar {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr const char* kMi210 = "topo-mi210-xgmi-pcie/nodes";
constexpr const char* kMi300x = "topo-mi300-cpx/topology/nodes";
constexpr const char* kMi308x = "topology-parsing-mi308/topology/nodes";
constexpr const char* kVega = "topology-parsing/topology/nodes";

fs::path TreeOf(const std::string& name) {
  return fs::path(ASHLAR_BUILD_DIR) / "kfd" / "testdata" / name;
}

// A machine with this topology whose device files all open.
class Machine {
 public:
  explicit Machine(const std::string& tree) {
    root_.MakeDirectory("/sys/class/kfd/kfd/topology");
    fs::create_directory_symlink(TreeOf(tree), root_.path() + kKfdNodes);
    root_.Write("/dev/kfd", "");
    for (const KfdGpu& gpu : Gpus())
      root_.Write("/dev/dri/renderD" + std::to_string(gpu.render_minor), "");
  }
  const FakeRoot& root() const { return root_; }
  std::vector<KfdGpu> Gpus() const { return ReadKfdTopology(RootFiles(root_.path())).gpus; }
  Accelerators Probe() const { return ProbeAmdFiles(RootFiles(root_.path())); }

 private:
  FakeRoot root_;
};

template <class Member>
auto Column(const std::vector<KfdGpu>& gpus, Member member) {
  std::vector<std::decay_t<decltype(gpus[0].*member)>> values;
  for (const KfdGpu& gpu : gpus) values.push_back(gpu.*member);
  return values;
}

std::map<std::string, int> CountBy(const std::vector<std::string>& words) {
  std::map<std::string, int> counts;
  for (const std::string& word : words) ++counts[word];
  return counts;
}

std::set<std::string> IsaNamesOf(const std::vector<KfdGpu>& gpus) {
  std::set<std::string> names;
  for (const KfdGpu& gpu : gpus) names.insert(gpu.capability ? gpu.capability->names[0] : "none");
  return names;
}

TEST(KfdTrees, EightMi210) {
  const Machine machine(kMi210);
  const std::vector<KfdGpu> gpus = machine.Gpus();
  EXPECT_THAT(Column(gpus, &KfdGpu::node),
              testing::ElementsAre("2", "3", "4", "5", "6", "7", "8", "9"));
  EXPECT_EQ(IsaNamesOf(gpus), std::set<std::string>{"gfx90a"});
  EXPECT_EQ(gpus[0].capability->value, 0x90au);
  EXPECT_THAT(Column(gpus, &KfdGpu::compute_units), Each(104));
  EXPECT_THAT(Column(gpus, &KfdGpu::product), Each("AMD Instinct MI210"));
  EXPECT_THAT(Column(gpus, &KfdGpu::partition), Each(""));
  EXPECT_THAT(Column(gpus, &KfdGpu::pci),
              testing::ElementsAre("0000:63:00.0", "0000:43:00.0", "0000:03:00.0", "0000:26:00.0",
                                   "0000:e3:00.0", "0000:c3:00.0", "0000:83:00.0", "0000:a3:00.0"));
  EXPECT_EQ(CountBy(Column(gpus, &KfdGpu::link)),
            (std::map<std::string, int>{{"xgmi:12609507387757274807", 4},
                                        {"xgmi:18091350218769748594", 4}}));

  // This capture has no memory banks; the PCI devices tell the size.
  EXPECT_EQ(machine.Probe().probe.outcome, ProbeOutcome::kBroken);
  EXPECT_THAT(machine.Probe().probe.detail, HasSubstr("the size of its memory is not stated"));
  for (const KfdGpu& gpu : gpus) {
    const std::string at = "/sys/bus/pci/devices/" + gpu.pci;
    machine.root().Write(at + "/mem_info_vram_total", std::to_string(64 * kGiB) + "\n");
    machine.root().Write(at + "/mem_info_vram_used", std::to_string(kGiB) + "\n");
  }
  const Accelerators found = machine.Probe();
  EXPECT_EQ(found.probe.outcome, ProbeOutcome::kFound);
  EXPECT_EQ(found.probe.detail, "8 x gfx90a");
  ASSERT_EQ(found.devices.size(), 8u);
  EXPECT_EQ(found.devices[7].index, 7);
  EXPECT_EQ(found.devices[7].memory_bytes, 64 * kGiB);
  EXPECT_EQ(found.devices[7].free_bytes, 63 * kGiB);
}

// Eight cards of eight partitions; the capture lacks the last node.
TEST(KfdTrees, Mi300xInCpxMode) {
  const Machine machine(kMi300x);
  const std::vector<KfdGpu> gpus = machine.Gpus();
  ASSERT_EQ(gpus.size(), 63u);
  EXPECT_EQ(IsaNamesOf(gpus), std::set<std::string>{"gfx942"});
  EXPECT_EQ(gpus[0].capability->value, 0x942u);
  EXPECT_THAT(Column(gpus, &KfdGpu::compute_units), Each(38));
  EXPECT_THAT(Column(gpus, &KfdGpu::product), Each("AMD Instinct MI300X"));
  EXPECT_THAT(Column(gpus, &KfdGpu::link), Each("xgmi:15188982192727901047"));
  const std::map<std::string, int> cards = CountBy(Column(gpus, &KfdGpu::pci));
  EXPECT_EQ(cards.size(), 8u);
  EXPECT_EQ(cards.at("0000:05:00.0"), 8);
  for (size_t i = 0; i < gpus.size(); ++i)
    EXPECT_EQ(gpus[i].partition, "CPX partition " + std::to_string(i % 8)) << gpus[i].node;

  // This capture has no memory banks either, and a partition's share is not the card's to tell.
  EXPECT_EQ(machine.Probe().probe.outcome, ProbeOutcome::kBroken);
  FakeRoot whole;
  whole.Write("/dev/kfd", "");
  whole.Write("/sys/bus/pci/devices/0000:05:00.0/current_memory_partition", "NPS4\n");
  for (const KfdGpu& gpu : gpus) {
    whole.Write("/dev/dri/renderD" + std::to_string(gpu.render_minor), "");
    const int node = std::stoi(gpu.node);
    AddKfdMemory(whole, node, std::to_string(24 * kGiB));
    fs::copy_file(TreeOf(kMi300x) / gpu.node / "properties",
                  whole.path() + KfdNode(node) + "/properties");
  }
  const Accelerators found = ProbeAmdFiles(RootFiles(whole.path()));
  EXPECT_EQ(found.probe.detail, "63 x gfx942");
  ASSERT_EQ(found.devices.size(), 63u);
  EXPECT_EQ(found.devices[3].partition, "CPX partition 3, NPS4");
  EXPECT_EQ(found.devices[3].memory_bytes, 24 * kGiB);
  EXPECT_EQ(found.devices[3].id, "0000:05:00.0");
  EXPECT_EQ(found.devices[62].index, 62);
}

TEST(KfdTrees, Mi308xInCpxMode) {
  const Machine machine(kMi308x);
  const Accelerators found = machine.Probe();
  EXPECT_EQ(found.probe.detail, "32 x gfx942");
  ASSERT_EQ(found.devices.size(), 32u);
  std::map<std::string, int> cards;
  for (size_t i = 0; i < 32; ++i) {
    const DeviceInfo& device = found.devices[i];
    ++cards[device.id];
    EXPECT_EQ(device.index, static_cast<int>(i));
    EXPECT_EQ(device.product, "AMD Instinct MI308X");
    EXPECT_EQ(device.compute_units, 20);
    EXPECT_EQ(device.partition, "CPX partition " + std::to_string(i % 4));
    EXPECT_EQ(device.link, "xgmi:2095653680343411291");
    // The kernel keeps 16 MiB of each card's last partition.
    EXPECT_EQ(device.memory_bytes, i % 4 == 3 ? 51522830336 : 51539607552);
    EXPECT_GT(device.free_bytes, 0);
    EXPECT_LT(device.free_bytes, device.memory_bytes);
  }
  EXPECT_EQ(found.devices[0].free_bytes, 51539607552 - 2907979776);
  EXPECT_EQ(cards.size(), 8u);
  EXPECT_EQ(cards.at("0000:0a:00.0"), 4);
}

// Without gfx_target_version, domain and hive: names come from the device id.
TEST(KfdTrees, VegaOfAnOldKernel) {
  const Machine machine(kVega);
  const Accelerators found = machine.Probe();
  EXPECT_EQ(found.probe.detail, "2 x gfx900");
  ASSERT_EQ(found.devices.size(), 2u);
  for (const DeviceInfo& device : found.devices) {
    EXPECT_EQ(device.capability, (Capability{CapabilityUnit::kGfx, 0x900, {"gfx900"}}));
    EXPECT_EQ(device.product, "AMD Radeon Vega 10");
    EXPECT_EQ(device.compute_units, 64);
    EXPECT_EQ(device.memory_bytes, 17163091968);
    EXPECT_EQ(device.free_bytes, 17163091968 - 14102528);
    EXPECT_EQ(device.id, "0000:19:00.0");
    EXPECT_EQ(device.partition, "");
    EXPECT_EQ(device.link, "");
  }
}

// Value of a line "key value" in a file of the kernel.
std::string ValueIn(const fs::path& file, const std::string& wanted) {
  std::ifstream text(file);
  for (std::string key, value; text >> key >> value;) {
    if (key == wanted) return value;
  }
  return "";
}

// Pairs of nodes that the kernel lists an xGMI link (type 11) for.
std::set<std::pair<std::string, std::string>> XgmiLinks(const std::string& tree) {
  std::set<std::pair<std::string, std::string>> links;
  for (const auto& node : fs::directory_iterator(TreeOf(tree))) {
    if (!fs::exists(node.path() / "io_links")) continue;
    for (const auto& link : fs::directory_iterator(node.path() / "io_links")) {
      const fs::path file = link.path() / "properties";
      if (ValueIn(file, "type") == "11")
        links.emplace(ValueIn(file, "node_from"), ValueIn(file, "node_to"));
    }
  }
  return links;
}

// That GPUs with one link word are joined rests on hive_id alone; the links themselves agree.
TEST(KfdTrees, AHiveIsWhatXgmiJoins) {
  std::map<std::string, size_t> counts;
  for (const char* tree : {kMi210, kMi300x, kMi308x, kVega}) {
    std::set<std::pair<std::string, std::string>> joined;
    const std::vector<KfdGpu> gpus = Machine(tree).Gpus();
    std::set<std::string> present;
    for (const KfdGpu& a : gpus) present.insert(a.node);
    for (const KfdGpu& a : gpus) {
      for (const KfdGpu& b : gpus) {
        if (a.node != b.node && !a.link.empty() && a.link == b.link) joined.emplace(a.node, b.node);
      }
    }
    std::set<std::pair<std::string, std::string>> links = XgmiLinks(tree);
    std::erase_if(links, [&](const auto& link) { return !present.contains(link.second); });
    EXPECT_EQ(joined, links) << tree;
    counts[tree] = links.size();
  }
  EXPECT_EQ(counts[kMi210], 24u);
  EXPECT_EQ(counts[kMi300x], 3906u);
  EXPECT_EQ(counts[kMi308x], 992u);
  EXPECT_EQ(counts[kVega], 0u);
}

// A container that was given one partition sees the topology of all.
TEST(KfdTrees, OnePartitionInAContainer) {
  const Machine machine(kMi308x);
  machine.root().Remove("/dev/dri");
  EXPECT_EQ(machine.Probe().probe.outcome, ProbeOutcome::kNoAccess);
  EXPECT_THAT(machine.Probe().probe.detail, StartsWith("32 x gfx942, but /dev/dri/renderD"));
  machine.root().Write("/dev/dri/renderD130", "");
  const Accelerators found = machine.Probe();
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0].index, 0);
  EXPECT_EQ(found.devices[0].partition, "CPX partition 2");
}

}  // namespace
}  // namespace ashlar
