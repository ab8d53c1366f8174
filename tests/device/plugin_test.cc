#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "device/device.h"

namespace ashlar {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string TestPlugin(const std::string& name) {
  return ASHLAR_BUILD_DIR "/tests/device/plugins/libashlar_" + name + ".so";
}

// The text of the refusal, or "loaded".
std::string Refusal(const std::string& path) {
  const auto plugin = Plugin::Load(path);
  return plugin.ok() ? "loaded" : Text(plugin.problems());
}

// An empty folder that goes away with the test.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(fs::path(::testing::TempDir()) / (name + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }
  void Copy(const std::string& from, const std::string& as) const {
    fs::copy_file(from, path_ / as);
  }
  void Write(const std::string& as, const std::string& text) const {
    std::ofstream(path_ / as) << text;
  }

 private:
  fs::path path_;
};

TEST(PluginLoad, RefusesAnotherAbiWithoutCallingAnything) {
  EXPECT_THAT(Refusal(TestPlugin("wrong_abi")),
              HasSubstr("libashlar_wrong_abi.so: plugin ABI 3: this runtime speaks ABI 2; install "
                        "plugin and runtime of one version"));
}

TEST(PluginLoad, RefusesTruncatedTable) {
  EXPECT_THAT(Refusal(TestPlugin("truncated")),
              HasSubstr("a table of 8 bytes: this runtime needs " +
                        std::to_string(sizeof(ashlar_plugin)) + " bytes"));
}

TEST(PluginLoad, NamesEveryMissingFunction) {
  EXPECT_THAT(Refusal(TestPlugin("missing_ops")),
              HasSubstr("missing from its table: attention, add;"));
}

TEST(PluginLoad, RefusesHalfASetOfOptionalFunctions) {
  EXPECT_THAT(Refusal(TestPlugin("half_streams")),
              HasSubstr("only some of the stream, graph or event functions: all of a set or none"));
}

TEST(PluginLoad, RefusesLibraryThatIsNoPlugin) {
  EXPECT_THAT(Refusal(TestPlugin("no_symbol")), HasSubstr("no symbol ashlar_plugin_table"));
}

TEST(PluginLoad, RefusesNullTable) {
  EXPECT_THAT(Refusal(TestPlugin("null_table")), HasSubstr("its table is NULL"));
}

TEST(PluginLoad, RefusesRowsThatAreNotItsOwn) {
  EXPECT_THAT(Refusal(TestPlugin("foreign_row")),
              HasSubstr("row SECOND: platform elsewhere: the plugin is named broken"));
  EXPECT_THAT(Refusal(TestPlugin("twin_rows")), HasSubstr("row FIRST: the name stands twice"));
  EXPECT_THAT(Refusal(TestPlugin("unknown_kind")), HasSubstr("row FIRST: kinds 0x40000000"));
  EXPECT_THAT(Refusal(TestPlugin("nameless_row")), HasSubstr("a row without a name or platform"));
}

TEST(PluginLoad, RefusesFileThatIsNoLibrary) {
  const Folder folder("no_library");
  folder.Write("libashlar_text.so", "not a shared object");
  EXPECT_THAT(Refusal(folder.path() + "/libashlar_text.so"),
              HasSubstr("a shared object that this machine can load"));
}

TEST(PluginLoad, GivesTheSamePluginForTheSamePath) {
  const auto first = Plugin::Load(TestPlugin("stub"));
  ASSERT_TRUE(first.ok()) << Text(first.problems());
  EXPECT_EQ(*first, Plugin::Load(TestPlugin("stub")).value());
  EXPECT_EQ((*first)->RowIndex("STUB_TWO"), 1);
  EXPECT_EQ((*first)->RowIndex("STUB_THREE"), -1);
}

TEST(LoadPlugins, KeepsUsableOnesAndTellsWhyOthersAreRefused) {
  const PluginScan scan = LoadPlugins(ASHLAR_BUILD_DIR "/tests/device/plugins");
  ASSERT_EQ(scan.plugins.size(), 2u);
  EXPECT_EQ(scan.plugins[0]->name(), "faulty");
  EXPECT_EQ(scan.plugins[1]->name(), "stub");
  EXPECT_EQ(scan.refused.size(), 10u) << Text(scan.refused);
}

TEST(LoadPlugins, RefusesSecondPluginOfOneName) {
  const Folder folder("twins");
  folder.Copy(ASHLAR_BUILD_DIR "/lib/ashlar/libashlar_reference.so", "libashlar_a.so");
  folder.Copy(ASHLAR_BUILD_DIR "/lib/ashlar/libashlar_reference.so", "libashlar_b.so");
  folder.Copy(ASHLAR_BUILD_DIR "/lib/ashlar/libashlar_reference.so", "unrelated.so");
  const PluginScan scan = LoadPlugins(folder.path());
  ASSERT_EQ(scan.plugins.size(), 1u);
  EXPECT_EQ(scan.plugins[0]->path(), folder.path() + "/libashlar_a.so");
  ASSERT_EQ(scan.refused.size(), 1u);
  EXPECT_EQ(scan.refused[0].Text(), folder.path() +
                                        "/libashlar_b.so: a second plugin named reference: already "
                                        "loaded from " +
                                        folder.path() +
                                        "/libashlar_a.so; remove one of the two files");
}

TEST(LoadPlugins, TellsThatTheDirectoryIsMissing) {
  const PluginScan scan = LoadPlugins("/nowhere/lib/ashlar");
  ASSERT_EQ(scan.refused.size(), 1u);
  EXPECT_THAT(scan.refused[0].Text(), HasSubstr("/nowhere/lib/ashlar: No such file or directory"));
}

TEST(LoadPlugins, StandBesideTheExecutable) {
  EXPECT_EQ(DefaultPluginDirectory(), ASHLAR_BUILD_DIR "/lib/ashlar");
}

TEST(PluginRows, AreTheKnownRowsOfItsPlatform) {
  const PluginScan scan = LoadPlugins(ASHLAR_BUILD_DIR "/lib/ashlar");
  EXPECT_TRUE(scan.refused.empty()) << Text(scan.refused);
  ASSERT_FALSE(scan.plugins.empty());
  for (const Plugin* plugin : scan.plugins) {
    std::vector<AttentionRow> known;
    std::copy_if(KnownRows().begin(), KnownRows().end(), std::back_inserter(known),
                 [&](const AttentionRow& row) { return row.platform == plugin->name(); });
    EXPECT_FALSE(known.empty()) << plugin->name();
    EXPECT_TRUE(plugin->rows() == known) << plugin->name();
  }
}

}  // namespace
}  // namespace ashlar
