#include "kv/allocation.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/toy_model_plan.h"

namespace ashlar {
namespace {

std::string ShortPath() { return std::string(ASHLAR_BUILD_DIR) + "/tests/kv/libashlar_short.so"; }

template <class T>
T& Setting(const char* name) {
  void* library = dlopen(ShortPath().c_str(), RTLD_NOW | RTLD_LOCAL);
  return *static_cast<T*>(dlsym(library, name));
}

// One token's K and V take 2 heads * 8 bytes in each layer. A sequence of 256 tokens, 32 of them
// in one step, takes 16 blocks of 16 tokens in the full group, and 5 of the sliding one.
class Allocation : public testing::Test {
 protected:
  Allocation() {
    toy::Shape shape;
    shape.context_length = 256;
    shape.groups = {{KvKind::kFull, 0, 2, 16, 0, 64}, {KvKind::kSliding, 20, 3, 16, 0, 20}};
    plan_ = toy::MakePlan(shape);
    plan_.batch_tokens = 32;
    auto plugin = Plugin::Load(ShortPath());
    device_ = std::move(*Device::Open(**plugin, {0, 1, true}));
    planned_ = ArenaBytes(plan_.groups);
    DeviceHas(kAnyRoom);
  }

  static void DeviceHas(int64_t bytes) {
    Setting<int64_t>("ashlar_test_most_bytes") = bytes;
    Setting<int>("ashlar_test_allocations") = 0;
  }

  static std::vector<int64_t> Blocks(const KvAllocation& memory) {
    std::vector<int64_t> blocks;
    for (const KvGroup& group : memory.groups) blocks.push_back(group.blocks - 1);
    return blocks;
  }

  // As an arena, whose own check finds views that do not fit their memory.
  void ExpectArena(KvAllocation memory) {
    auto arena = KvArena::Create(plan_, *device_, std::move(memory));
    EXPECT_TRUE(arena.ok()) << Text(arena.problems());
  }

  Plan plan_;
  std::unique_ptr<Device> device_;
  int64_t planned_ = 0;
};

TEST_F(Allocation, IsAsPlannedWhenThatFits) {
  auto memory = AllocateKv(plan_, *device_, planned_);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(Blocks(*memory), (std::vector<int64_t>{64, 20}));
  EXPECT_EQ(memory->buffer.bytes(), planned_);
  EXPECT_EQ(Setting<int>("ashlar_test_allocations"), 1);
  ExpectArena(std::move(*memory));
}

TEST_F(Allocation, IsLoweredToTheRoomThatIsLeft) {
  auto memory = AllocateKv(plan_, *device_, planned_ / 2);
  ASSERT_TRUE(memory.ok());
  // Both groups keep room for equally many sequences.
  std::vector<int64_t> blocks = Blocks(*memory);
  EXPECT_LT(blocks[0], 64);
  EXPECT_GE(blocks[0], 2 * 16 - 4);
  EXPECT_NEAR(static_cast<double>(blocks[0]) / 16, static_cast<double>(blocks[1]) / 5, 0.25);
  EXPECT_LE(memory->buffer.bytes(), planned_ / 2);
  EXPECT_GT(memory->buffer.bytes(), planned_ / 3);
  EXPECT_EQ(Setting<int>("ashlar_test_allocations"), 1);
  ExpectArena(std::move(*memory));
}

TEST_F(Allocation, IsLoweredToWhatTheDeviceGives) {
  for (int sixteenths = 6; sixteenths < 16; ++sixteenths) {
    DeviceHas(planned_ * sixteenths / 16);
    auto memory = AllocateKv(plan_, *device_, kAnyRoom);
    ASSERT_TRUE(memory.ok()) << Text(memory.problems());
    EXPECT_LE(memory->buffer.bytes(), planned_ * sixteenths / 16);
    EXPECT_GT(memory->buffer.bytes(), planned_ * (sixteenths - 2) / 16) << sixteenths;
    ExpectArena(std::move(*memory));
  }
}

TEST_F(Allocation, LeavesTheDeviceWhatComesLater) {
  plan_.memory.workspace_bytes = 6000;
  plan_.memory.graph_bytes = 4000;
  DeviceHas(planned_ + 9'999);
  auto memory = AllocateKv(plan_, *device_, kAnyRoom);
  ASSERT_TRUE(memory.ok()) << Text(memory.problems());
  EXPECT_LT(memory->buffer.bytes(), planned_);
  EXPECT_TRUE(device_->Alloc(10'000).ok());
  DeviceHas(9'999);
  auto refused = AllocateKv(plan_, *device_, kAnyRoom);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(Text(refused.problems()), testing::HasSubstr("the device refuses"));
}

TEST_F(Allocation, HoldsOneSequenceToTheLastByteAndRefusesOneByteLess) {
  int64_t least = 0;
  for (int64_t room = planned_; room > 0; room -= 64) {
    auto memory = AllocateKv(plan_, *device_, room);
    if (!memory) break;
    least = room;
    ASSERT_GE(Blocks(*memory)[0], 16);
    ASSERT_GE(Blocks(*memory)[1], 5);
  }
  auto memory = AllocateKv(plan_, *device_, least);
  EXPECT_EQ(Blocks(*memory), (std::vector<int64_t>{16, 5}));
  auto refused = AllocateKv(plan_, *device_, least - 64);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(Text(refused.problems()),
              testing::MatchesRegex("kv.memory: .* were planned, .* are free now: at least .*: one "
                                    "sequence of 256 tokens; lower contextLength.*"));
}

TEST_F(Allocation, NamesTheDevicesOwnRefusal) {
  DeviceHas(1000);
  auto refused = AllocateKv(plan_, *device_, kAnyRoom);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.problems().size(), 1u);
  EXPECT_THAT(Text(refused.problems()), testing::HasSubstr("the device refuses"));
  EXPECT_LE(Setting<int>("ashlar_test_allocations"), 17);
}

}  // namespace
}  // namespace ashlar
