#include "device/row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ashlar_plugin.h"
#include "device/row_table.h"

namespace ashlar {
namespace {

using ::testing::HasSubstr;

// Every member differs from its default.
AttentionRow FullRow() {
  AttentionRow row;
  row.name = "EVERYTHING";
  row.platform = "cuda";
  row.kinds = {KvKind::kFull, KvKind::kMamba};
  row.dtypes = {DType::kF16, DType::kBF16};
  row.kv_dtypes = {DType::kBF16, DType::kI8};
  row.head_sizes = {64, 128};
  row.head_multiple = 8;
  row.kernel_blocks = {{16, true}, {24, false}};
  row.manager_blocks = {{64, false}};
  row.preferred_block = 64;
  row.layouts = {KvLayout::kLHBNC, KvLayout::kBHLNC};
  row.head_slots = 1;
  row.sinks = row.window = row.mla = row.kv_connector = row.batch_invariant = true;
  row.non_causal = row.any_strides = row.sparse = row.mm_prefix = row.head_scales = true;
  row.prefix_window = row.pcp = row.dcp = row.host_query_lengths = true;
  row.capability_unit = CapabilityUnit::kGfx;
  row.capability_min = 0x90a;
  row.capability_max = 0x942;
  row.built_for = {"gfx90a", "gfx942"};
  row.verification = Verification::kCompileVerified;
  return row;
}

Json WithKey(std::string key, Json value) {
  Json json = ToJson(FullRow());
  json[key] = std::move(value);
  return json;
}

std::string Refusal(const Json& json) {
  const auto row = AttentionRowFromJson(json, "rows[0]");
  return row.ok() ? "read" : Text(row.problems());
}

TEST(RowJson, ReadsBackWhatItWrote) {
  std::vector<AttentionRow> rows = KnownRows();
  rows.push_back(FullRow());
  for (const AttentionRow& row : rows) {
    const auto read = AttentionRowFromJson(ToJson(row), "rows[0]");
    ASSERT_TRUE(read.ok()) << Text(read.problems());
    EXPECT_TRUE(*read == row) << ToJson(row).dump(2) << ToJson(*read).dump(2);
  }
}

TEST(RowJson, RefusesWrongValuesByName) {
  EXPECT_THAT(Refusal(WithKey("kinds", {"full"})), HasSubstr("rows[0].kinds: \"full\""));
  EXPECT_THAT(Refusal(WithKey("dtypes", {17})), HasSubstr("rows[0].dtypes: 17"));
  EXPECT_THAT(Refusal(WithKey("headSizes", {-1})),
              HasSubstr("rows[0].headSizes: -1: a whole number from 0 to 2147483647"));
  EXPECT_THAT(Refusal(WithKey("headMultiple", 0)), HasSubstr("rows[0].headMultiple: 0"));
  EXPECT_THAT(Refusal(WithKey("kernelBlocks", {{{"tokens", 0}, {"multiple", true}}})),
              HasSubstr("rows[0].kernelBlocks: 0 tokens"));
  EXPECT_THAT(Refusal(WithKey("kernelBlocks", {{{"tokens", 16}}})),
              HasSubstr("rows[0].kernelBlocks: {\"tokens\":16}"));
  EXPECT_THAT(Refusal(WithKey("layouts", {"NHD"})), HasSubstr("rows[0].layouts: \"NHD\""));
  EXPECT_THAT(Refusal(WithKey("features", {"speed"})), HasSubstr("rows[0].features: \"speed\""));
  EXPECT_THAT(Refusal(WithKey("capability", {{"unit", "volt"}})),
              HasSubstr("rows[0].capability.unit: \"volt\": any, cuda, gfx or cpu"));
  EXPECT_THAT(Refusal(WithKey("verification", "hoped")),
              HasSubstr("\"hoped\": tested, compile-verified or planned"));
  EXPECT_THAT(Refusal(WithKey("preferredBlock", 4294967296)), HasSubstr("rows[0].preferredBlock"));
  EXPECT_THAT(Refusal(WithKey("preferredBlock", 1.5)), HasSubstr("rows[0].preferredBlock: 1.5"));
  EXPECT_THAT(Refusal(WithKey("name", "")), HasSubstr("rows[0].name: \"\": a string"));
  EXPECT_THAT(Refusal(WithKey("builtFor", "gfx942")), HasSubstr("rows[0].builtFor"));
  EXPECT_THAT(Refusal(Json::array()), HasSubstr("rows[0]: []: an attention row (an object)"));
}

TEST(RowJson, RefusesUnknownAndMissingKeysTogether) {
  Json json = ToJson(FullRow());
  json.erase("kinds");
  json["kvDtype"] = "float32";
  const std::string text = Refusal(json);
  EXPECT_THAT(text, HasSubstr("rows[0].kvDtype: unknown key: kvDtypes?"));
  EXPECT_THAT(text, HasSubstr("rows[0].kinds: missing"));
}

TEST(KnownRows, HaveUniqueNames) {
  std::set<std::string> names;
  for (const AttentionRow& row : KnownRows()) EXPECT_TRUE(names.insert(row.name).second);
  EXPECT_TRUE(names.contains("REFERENCE"));
  EXPECT_TRUE(names.contains("CPU_PAGED"));
}

TEST(RowNames, AreReadBack) {
  for (int kind = 0; kind <= static_cast<int>(KvKind::kMamba); ++kind) {
    EXPECT_EQ(ParseKvKind(Name(static_cast<KvKind>(kind))), static_cast<KvKind>(kind));
  }
  for (int layout = 1; layout <= 6; ++layout) {
    EXPECT_EQ(ParseKvLayout(Name(static_cast<KvLayout>(layout))), static_cast<KvLayout>(layout));
  }
  EXPECT_EQ(Name(KvKind::kSliding), "sliding_window");
  EXPECT_EQ(Name(KvLayout::kBHLNC), "BHLNC");
  EXPECT_EQ(ParseKvKind("sliding"), std::nullopt);
}

TEST(BlockRules, ReadAsASentence) {
  EXPECT_EQ(Text(std::vector<BlockRule>{{16, true}}), "a multiple of 16");
  EXPECT_EQ(Text(std::vector<BlockRule>{{64, false}, {128, false}}), "64 or 128");
  EXPECT_EQ(Text(std::vector<BlockRule>{{16, false}, {32, false}, {64, true}}),
            "16, 32 or a multiple of 64");
}

TEST(ReadRow, TakesEveryMember) {
  ashlar_row c{};
  c.name = "EVERYTHING";
  c.platform = "cuda";
  c.kinds = ASHLAR_KIND_BIT(ASHLAR_FULL_ATTENTION) | ASHLAR_KIND_BIT(ASHLAR_MAMBA);
  c.dtypes = ASHLAR_DTYPE_BIT(ASHLAR_F16) | ASHLAR_DTYPE_BIT(ASHLAR_BF16);
  c.kv_dtypes = ASHLAR_DTYPE_BIT(ASHLAR_BF16) | ASHLAR_DTYPE_BIT(ASHLAR_I8);
  c.head_sizes[0] = 64, c.head_sizes[1] = 128;
  c.head_multiple = 8;
  c.kernel_blocks[0] = {16, 1}, c.kernel_blocks[1] = {24, 0};
  c.manager_blocks[0] = {64, 0};
  c.preferred_block = 64;
  c.layouts[0] = ASHLAR_LHBNC, c.layouts[1] = ASHLAR_BHLNC;
  c.head_slots = 1;
  c.features = ASHLAR_HAS_SINKS | ASHLAR_HAS_WINDOW | ASHLAR_IS_MLA | ASHLAR_HAS_KV_CONNECTOR |
               ASHLAR_IS_BATCH_INVARIANT | ASHLAR_HAS_NON_CAUSAL | ASHLAR_READS_LAYOUT_STRIDES |
               ASHLAR_IS_SPARSE | ASHLAR_HAS_MM_PREFIX | ASHLAR_HAS_HEAD_SCALES |
               ASHLAR_HAS_PREFIX_WINDOW | ASHLAR_HAS_PCP | ASHLAR_HAS_DCP |
               ASHLAR_NEEDS_HOST_QUERY_LENGTHS;
  c.capability_unit = ASHLAR_CAP_GFX;
  c.capability_min = 0x90a, c.capability_max = 0x942;
  c.built_for[0] = "gfx90a", c.built_for[1] = "gfx942";
  c.verification = ASHLAR_COMPILE_VERIFIED;
  const auto row = ReadRow(c, "table");
  ASSERT_TRUE(row.ok());
  EXPECT_TRUE(*row == FullRow()) << ToJson(*row).dump(2);
}

TEST(ReadRow, RefusesValuesOfAnotherVersion) {
  const auto refused = [](auto change) {
    ashlar_row c{};
    c.name = "ROW", c.platform = "cuda";
    change(c);
    return !ReadRow(c, "table").ok();
  };
  EXPECT_FALSE(refused([](ashlar_row&) {}));
  EXPECT_TRUE(refused([](ashlar_row& c) { c.kinds = 1u << 20; }));
  EXPECT_TRUE(refused([](ashlar_row& c) { c.dtypes = 1u << 30; }));
  EXPECT_TRUE(refused([](ashlar_row& c) { c.kv_dtypes = 1u << 6; }));
  EXPECT_TRUE(refused([](ashlar_row& c) { c.features = 1u << 20; }));
  EXPECT_TRUE(refused([](ashlar_row& c) { c.layouts[0] = 7; }));
  EXPECT_TRUE(refused([](ashlar_row& c) { c.kernel_blocks[0] = {-16, 1}; }));
  EXPECT_TRUE(refused([](ashlar_row& c) { c.verification = static_cast<ashlar_verification>(7); }));
  EXPECT_TRUE(refused([](ashlar_row& c) { c.name = ""; }));
}

}  // namespace
}  // namespace ashlar
