#include "probe/cpu_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/spec_fake_root.h"

namespace ashlar {
namespace {

using testing::ElementsAre;

TEST(ParseCpuList, ReadsTheKernelsLists) {
  EXPECT_EQ(ParseCpuList("0")->count(), 1u);
  EXPECT_EQ(ParseCpuList("0-3,8,10-11")->count(), 7u);
  EXPECT_TRUE(ParseCpuList("0-3,8")->test(8));
  EXPECT_EQ(ParseCpuList("8191")->count(), 1u);
}

TEST(ParseCpuList, RefusesWhatIsNoList) {
  for (const char* text : {"", ",", "1,", "3-1", "-1", "1-", "a", "1-2-3", "8192", "0-99999999999",
                           "0 1", "0x1", "0-10:2/4"})
    EXPECT_EQ(ParseCpuList(text), std::nullopt) << text;
}

TEST(CpuCapability, ASetCountsWhenAllItsFlagsAreThere) {
  EXPECT_THAT(CpuCapability("sse2 avx2 fma f16c").names, ElementsAre("avx2"));
  EXPECT_THAT(CpuCapability("avx2 f16c").names, ElementsAre());
  EXPECT_THAT(CpuCapability("avx2x fma f16c").names, ElementsAre());
  Capability zen4 =
      CpuCapability("avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_vnni avx512_bf16");
  EXPECT_THAT(zen4.names, ElementsAre("avx2", "avx512f", "avx512_vnni", "avx512_bf16"));
  EXPECT_EQ(zen4.value, kAvx2 | kAvx512 | kAvx512Vnni | kAvx512Bf16);
  EXPECT_EQ(CpuCapability("amx_tile amx_int8 amx_bf16 avx_vnni").value, kAmx | kAvxVnni);
  EXPECT_EQ(CpuCapability("amx_tile").value, 0u);
}

TEST(CpuFacts, ReadATree) {
  FakeRoot root;
  root.Write("/proc/cpuinfo",
             "processor\t: 0\nmodel name\t: AMD EPYC 7763\nflags\t\t: fpu avx2 fma f16c\n\n"
             "processor\t: 1\nmodel name\t: other\n");
  root.Write("/proc/self/status", "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t2-5\n");
  root.Write("/sys/devices/system/cpu/online", "0-3\n");
  root.Write("/sys/devices/system/node/online", "0-1\n");
  const std::string cache = "/sys/devices/system/cpu/cpu2/cache/index";
  root.Write(cache + "0/level", "1\n");
  root.Write(cache + "0/type", "Data\n");
  root.Write(cache + "0/size", "32K\n");
  root.Write(cache + "1/level", "1\n");
  root.Write(cache + "1/type", "Instruction\n");
  root.Write(cache + "1/size", "64K\n");
  root.Write(cache + "2/level", "2\n");
  root.Write(cache + "2/type", "Unified\n");
  root.Write(cache + "2/size", "512K\n");
  root.Write(cache + "3/level", "3\n");
  root.Write(cache + "3/type", "Unified\n");
  root.Write(cache + "3/size", "32M\n");
  CpuFacts facts = ReadCpuFacts(RootFiles(root.path()));
  EXPECT_EQ(facts.product, "AMD EPYC 7763");
  EXPECT_THAT(facts.capability.names, ElementsAre("avx2"));
  EXPECT_EQ(facts.allowed, *ParseCpuList("2-3"));
  EXPECT_EQ(facts.numa_nodes, 2);
  EXPECT_EQ(facts.l1d_bytes, 32 << 10);
  EXPECT_EQ(facts.l2_bytes, 512 << 10);
  EXPECT_EQ(facts.l3_bytes, 32 << 20);
}

TEST(CpuFacts, CountProcessorsWhereNothingElseIsSaid) {
  FakeRoot root;
  root.Write("/proc/cpuinfo", "processor : 0\nprocessor : 1\nprocessor : 2\n");
  EXPECT_EQ(ReadCpuFacts(RootFiles(root.path())).allowed.count(), 3u);
}

TEST(CpuFacts, OfAnEmptyTreeAreOneUnnamedProcessor) {
  FakeRoot root;
  CpuFacts facts = ReadCpuFacts(RootFiles(root.path()));
  EXPECT_EQ(facts.product, "unnamed CPU");
  EXPECT_EQ(facts.allowed.count(), 1u);
  EXPECT_EQ(facts.numa_nodes, 1);
  EXPECT_EQ(facts.l1d_bytes, 0);
}

TEST(CpuFacts, SurviveHostileFiles) {
  for (const std::string& text :
       {std::string("99999999999999999999"), std::string("\0\xff:-,", 5), std::string(70000, '9'),
        std::string(":::::\n:\n::"), std::string("model name\nflags:")}) {
    FakeRoot root;
    const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index0/";
    for (const std::string& file :
         {std::string("/proc/cpuinfo"), std::string("/proc/self/status"),
          std::string("/sys/devices/system/cpu/online"),
          std::string("/sys/devices/system/node/online"), cache + "level", cache + "size"}) {
      root.Write(file, text);
    }
    CpuFacts facts = ReadCpuFacts(RootFiles(root.path()));
    EXPECT_GE(facts.allowed.count(), 1u);
    EXPECT_GE(facts.l1d_bytes, 0);
  }
}

}  // namespace
}  // namespace ashlar
