#include <gtest/gtest.h>
#include <string.h>

#include "device.h"

namespace ashlar::cpu {
namespace {

TEST(Pages, AreZeroedAndAligned) {
  for (int64_t bytes : {1, 4096, 3 << 20}) {
    const Pages pages(bytes);
    ASSERT_NE(pages.data(), nullptr);
    EXPECT_GE(pages.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pages.data()) % 64, 0u);
    for (int64_t i = 0; i < bytes; i += 1000)
      EXPECT_EQ(static_cast<const char*>(pages.data())[i], 0);
  }
}

TEST(Pages, ImpossibleSizesGiveNone) { EXPECT_EQ(Pages(int64_t{1} << 60).data(), nullptr); }

TEST(Slabs, PartsDoNotOverlapAndOutliveTheDevice) {
  std::vector<Slabs::Part> parts;
  const int64_t sizes[] = {100, 64, 40 << 20, 1000, 20 << 20, 5 << 20, 1};
  {
    Slabs slabs;
    for (int64_t size : sizes) parts.push_back(slabs.Take(size));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSERT_NE(parts[i].data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(parts[i].data) % 64, 0u);
    memset(parts[i].data, static_cast<int>(i + 1), sizes[i]);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto* bytes = static_cast<const uint8_t*>(parts[i].data);
    EXPECT_EQ(bytes[0], i + 1);
    EXPECT_EQ(bytes[sizes[i] - 1], i + 1);
  }
}

TEST(Scratch, GrowsAndKeepsItsAddressOtherwise) {
  Scratch scratch;
  float* first = scratch.Get<float>(1000);
  EXPECT_EQ(scratch.Get<float>(10), first);
  float* more = scratch.Get<float>(1 << 20);
  ASSERT_NE(more, nullptr);
  more[(1 << 20) - 1] = 1;
}

}  // namespace
}  // namespace ashlar::cpu
