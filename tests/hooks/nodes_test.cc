#include "operator-hooks/nodes.h"

#include <gtest/gtest.h>

#include "operator-hooks/quantity.h"

namespace ashlar::hooks {
namespace {

TEST(Quantity, AsNodesStateThem) {
  EXPECT_EQ(ParseQuantity("64"), 64);
  EXPECT_EQ(ParseQuantity("63500m"), 63);
  EXPECT_EQ(ParseQuantity("512Gi"), int64_t{512} << 30);
  EXPECT_EQ(ParseQuantity("527912345Ki"), int64_t{527912345} << 10);
  EXPECT_EQ(ParseQuantity("2G"), 2'000'000'000);
}

TEST(Quantity, RefusesOtherText) {
  for (const char* text : {"", "Gi", "-1", "1.5Gi", "1e3", "12 Gi", "9999999999999Ti"})
    EXPECT_FALSE(ParseQuantity(text)) << text;
}

std::vector<NodeKind> Read(const std::string& nodes) {
  JsonParser parser;
  Problems problems;
  std::string body = R"({"related":{"Node.v1":)" + nodes + "}}";
  ObjectReader reader(parser.Parse(body, "body").value(), "", problems);
  std::vector<NodeKind> kinds = ReadNodes(reader);
  EXPECT_TRUE(problems.empty()) << Text(problems);
  return kinds;
}

TEST(Nodes, LabelsOfNvidia) {
  std::vector<NodeKind> kinds = Read(R"({"n":{"metadata":{"labels":{
      "nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB","nvidia.com/gpu.memory":"81920",
      "nvidia.com/gpu.compute.major":"8","nvidia.com/gpu.compute.minor":"0"}},
      "status":{"allocatable":{"cpu":"64","memory":"512Gi","nvidia.com/gpu":"8"}}}})");
  ASSERT_EQ(kinds.size(), 1u);
  std::optional<Platform> platform = PlatformOf(kinds[0], "nvidia.com/gpu");
  ASSERT_TRUE(platform);
  const DeviceInfo& device = platform->devices[0];
  EXPECT_EQ(device.platform, "cuda");
  EXPECT_EQ(device.capability.value, 80u);
  EXPECT_EQ(device.memory_bytes, int64_t{81920} << 20);
  EXPECT_LT(device.free_bytes, device.memory_bytes);
}

TEST(Nodes, SliceOfADeviceHasItsOwnMemory) {
  std::vector<NodeKind> kinds = Read(R"({"n":{"metadata":{"labels":{
      "nvidia.com/gpu.product":"NVIDIA-H100-80GB-HBM3"}},
      "status":{"allocatable":{"nvidia.com/mig-1g.10gb":"7"}}}})");
  std::optional<Platform> platform = PlatformOf(kinds[0], "nvidia.com/mig-1g.10gb");
  ASSERT_TRUE(platform);
  EXPECT_EQ(platform->devices[0].memory_bytes, 10'000'000'000);
}

TEST(Nodes, PartitionedAmdDevicesAreNotWholeOnes) {
  auto node = [](const char* devices) {
    return std::string(R"({"n":{"metadata":{"labels":{"amd.com/gpu.product-name":
        "Instinct_MI300X"}},"status":{"allocatable":{"amd.com/gpu":")") +
           devices + R"("}}}})";
  };
  EXPECT_TRUE(PlatformOf(Read(node("8"))[0], "amd.com/gpu"));
  EXPECT_FALSE(PlatformOf(Read(node("64"))[0], "amd.com/gpu"));
}

TEST(Nodes, NumbersBeyondReasonAreNone) {
  std::vector<NodeKind> kinds = Read(R"({"n":{"metadata":{"labels":{
      "nvidia.com/gpu.memory":"9223372036854775807","nvidia.com/gpu.compute.major":"999999999999",
      "nvidia.com/gpu.compute.minor":"x"}},
      "status":{"allocatable":{"nvidia.com/gpu":"8","memory":"99999999999999999999Ti"}}}})");
  EXPECT_FALSE(PlatformOf(kinds[0], "nvidia.com/gpu"));
}

}  // namespace
}  // namespace ashlar::hooks
