#include "device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace ashlar {
namespace {

using ::testing::HasSubstr;

const Plugin& Stub() {
  return *Plugin::Load(ASHLAR_BUILD_DIR "/tests/device/plugins/libashlar_stub.so").value();
}

std::unique_ptr<Device> OpenStub() { return Device::Open(Stub(), {}).value(); }

// What of the stub plugin is alive.
std::string Alive() { return Stub().Probe().detail; }

std::span<const std::byte> Bytes(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

TEST(Device, ReleasesEverythingItOwns) {
  const std::vector<float> source(32);
  {
    const auto device = OpenStub();
    const Buffer buffer = device->Alloc(64).value();
    Buffer moved = device->Alloc(16).value();
    moved = device->Alloc(24).value();
    const WeightPart part{DType::kF32, 2, Bytes(source.data(), 128)};
    Weight weight = device->CreateWeight({&part, 1}, 16, false).value();
    const Weight taken = std::move(weight);
    EXPECT_TRUE(weight.empty());
    EXPECT_EQ(taken.rows(), 2);
    EXPECT_EQ(taken.cols(), 16);
    EXPECT_EQ(buffer.bytes(), 64);
    EXPECT_THAT(Alive(), HasSubstr("devices 1 buffers 2 weights 1 streams 1"));
  }
  EXPECT_THAT(Alive(), HasSubstr("devices 0 buffers 0 weights 0 streams 0"));
}

TEST(Device, SyncsItsStream) {
  const auto device = OpenStub();
  const std::string before = Alive();
  EXPECT_TRUE(device->Sync().ok());
  EXPECT_NE(Alive(), before);
}

TEST(Device, FailureCarriesThePluginsOwnLine) {
  const auto device = OpenStub();
  const auto buffer = device->Alloc(1001);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(Text(buffer.problems()), "plugin stub alloc: 1000 bytes is all there is");
  DeviceOptions second;
  second.index = 1;
  EXPECT_EQ(Text(Device::Open(Stub(), second).problems()),
            "plugin stub open: there is only device 0");
  EXPECT_THAT(Alive(), HasSubstr("devices 1 buffers 0"));
}

TEST(Device, DescribesWeightsToThePlugin) {
  const auto device = OpenStub();
  const std::vector<WeightPart> parts = {{DType::kF32, 7, {}}, {DType::kF16, 1, {}}};
  EXPECT_EQ(device->WeightBytes(parts, 32, true), 2'000'000 + 100'000 + 7 * 100 + 32);
  EXPECT_EQ(device->WeightBytes(parts, 32, false), 2'000'000 + 7 * 100 + 32);
}

TEST(Device, FlippingTheRowRunsAnotherKernel) {
  const auto device = OpenStub();
  float out = 0;
  ashlar_attention args{};
  args.out.data = &out;
  ASSERT_TRUE(device->Attention(0, args).ok());
  EXPECT_EQ(out, 1.0f);
  EXPECT_EQ(device->RowLaunches(0), 1);
  EXPECT_EQ(device->RowLaunches(1), 0);
  ASSERT_TRUE(device->Attention(1, args).ok());
  EXPECT_EQ(out, 2.0f);
  EXPECT_EQ(device->RowLaunches(0), 1);
  EXPECT_EQ(device->RowLaunches(1), 1);
}

TEST(Device, CopiesInAndOut) {
  const auto device = OpenStub();
  const Buffer buffer = device->Alloc(8).value();
  const std::array<char, 4> in = {'a', 'b', 'c', 'd'};
  std::array<char, 4> out{};
  ASSERT_TRUE(device->CopyIn(static_cast<char*>(buffer.data()) + 2, Bytes(in.data(), 4)).ok());
  ASSERT_TRUE(device
                  ->CopyOut({reinterpret_cast<std::byte*>(out.data()), 4},
                            static_cast<char*>(buffer.data()) + 2)
                  .ok());
  EXPECT_EQ(in, out);
}

TEST(DeviceDeathTest, ChecksShapesBeforeThePluginSeesThem) {
  const auto device = OpenStub();
  std::array<float, 64> memory{};
  const auto matrix = [&](int64_t rows, int64_t cols) {
    return Tensor::Of(memory.data(), DType::kF32, {rows, cols});
  };
  const WeightPart part{DType::kF32, 2, Bytes(memory.data(), 128)};
  const Weight weight = device->CreateWeight({&part, 1}, 16, false).value();
  EXPECT_TRUE(device->Matmul(matrix(3, 2), matrix(3, 16), weight).ok());
  EXPECT_DEATH((void)device->Matmul(matrix(3, 2), matrix(3, 15), weight), "x is \\[m, cols\\]");
  EXPECT_DEATH((void)device->Matmul(matrix(3, 3), matrix(3, 16), weight), "x is \\[m, cols\\]");
  EXPECT_DEATH((void)device->Matmul(matrix(2, 2), matrix(3, 16), weight), "have m rows");
  EXPECT_DEATH((void)device->Add(matrix(2, 4), matrix(2, 3)), "add: sum and x");
  EXPECT_DEATH((void)device->Gather(matrix(2, 4), matrix(2, 3), nullptr), "same columns");
  EXPECT_DEATH((void)device->GatedActivation(matrix(2, 4), matrix(2, 4), ASHLAR_SILU),
               "2 \\* width");
  EXPECT_DEATH((void)device->Attention(2, ashlar_attention{}), "the row is the plugin's own");
  const WeightPart short_part{DType::kQ8_0, 2, Bytes(memory.data(), 67)};
  EXPECT_DEATH((void)device->CreateWeight({&short_part, 1}, 32, false), "as many bytes");
}

TEST(TensorToC, StridesAreInBytes) {
  const ashlar_tensor dense = ToC(Tensor::Of(nullptr, DType::kF16, {2, 3, 5}));
  EXPECT_EQ(dense.rank, 3);
  EXPECT_EQ(dense.stride[2], 2);
  EXPECT_EQ(dense.stride[1], 10);
  EXPECT_EQ(dense.stride[0], 30);
  const ashlar_tensor blocks = ToC(Tensor::Of(nullptr, DType::kQ4_0, {4, 64}));
  EXPECT_EQ(blocks.stride[0], 36);
}

TEST(Tensor, RowsKeepsTheFirst) {
  const Tensor tensor = Tensor::Of(nullptr, DType::kF32, {5, 3});
  EXPECT_EQ(tensor.bytes(), 60);
  EXPECT_EQ(tensor.Rows(2).shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensor.Rows(2).bytes(), 24);
}

TEST(PluginProbe, FailureIsBrokenWithItsReason) {
  const Plugin& faulty =
      *Plugin::Load(ASHLAR_BUILD_DIR "/tests/device/plugins/libashlar_faulty.so").value();
  EXPECT_EQ(Stub().Probe().outcome, 0);
  EXPECT_EQ(faulty.Probe().outcome, 4);
  EXPECT_STREQ(faulty.Probe().detail, "the driver answered 999");
}

}  // namespace
}  // namespace ashlar
