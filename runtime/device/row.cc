#include "device/row.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <span>

#include "ashlar_rows.h"
#include "device/row_table.h"

namespace ashlar {
namespace {

// Indexed by the value of KvKind.
constexpr std::array<std::string_view, 9> kKindNames = {
    "full_attention",     "mla_attention",           "sliding_window",
    "sliding_window_mla", "chunked_local_attention", "sink_full_attention",
    "cross_attention",    "encoder_only_attention",  "mamba",
};
// Indexed by the value of KvLayout less one.
constexpr std::array<std::string_view, 6> kLayoutNames = {"LBHNC", "LBNHC", "LHBNC",
                                                          "BLHNC", "BLNHC", "BHLNC"};
constexpr std::array<std::string_view, 3> kVerificationNames = {"tested", "compile-verified",
                                                                "planned"};

static_assert(int{ASHLAR_FULL_ATTENTION} == static_cast<int>(KvKind::kFull));
static_assert(int{ASHLAR_MLA_ATTENTION} == static_cast<int>(KvKind::kMla));
static_assert(int{ASHLAR_SLIDING_WINDOW} == static_cast<int>(KvKind::kSliding));
static_assert(int{ASHLAR_SLIDING_WINDOW_MLA} == static_cast<int>(KvKind::kSlidingMla));
static_assert(int{ASHLAR_CHUNKED_LOCAL_ATTENTION} == static_cast<int>(KvKind::kChunkedLocal));
static_assert(int{ASHLAR_SINK_FULL_ATTENTION} == static_cast<int>(KvKind::kSinkFull));
static_assert(int{ASHLAR_CROSS_ATTENTION} == static_cast<int>(KvKind::kCross));
static_assert(int{ASHLAR_ENCODER_ONLY_ATTENTION} == static_cast<int>(KvKind::kEncoderOnly));
static_assert(int{ASHLAR_MAMBA} == static_cast<int>(KvKind::kMamba));

static_assert(int{ASHLAR_LBHNC} == static_cast<int>(KvLayout::kLBHNC));
static_assert(int{ASHLAR_LBNHC} == static_cast<int>(KvLayout::kLBNHC));
static_assert(int{ASHLAR_LHBNC} == static_cast<int>(KvLayout::kLHBNC));
static_assert(int{ASHLAR_BLHNC} == static_cast<int>(KvLayout::kBLHNC));
static_assert(int{ASHLAR_BLNHC} == static_cast<int>(KvLayout::kBLNHC));
static_assert(int{ASHLAR_BHLNC} == static_cast<int>(KvLayout::kBHLNC));

static_assert(int{ASHLAR_TESTED} == static_cast<int>(Verification::kTested));
static_assert(int{ASHLAR_COMPILE_VERIFIED} == static_cast<int>(Verification::kCompileVerified));
static_assert(int{ASHLAR_PLANNED} == static_cast<int>(Verification::kPlanned));

static_assert(int{ASHLAR_CAP_ANY} == static_cast<int>(CapabilityUnit::kAny));
static_assert(int{ASHLAR_CAP_CUDA} == static_cast<int>(CapabilityUnit::kCuda));
static_assert(int{ASHLAR_CAP_GFX} == static_cast<int>(CapabilityUnit::kGfx));
static_assert(int{ASHLAR_CAP_CPU} == static_cast<int>(CapabilityUnit::kCpu));

static_assert(int{ASHLAR_F32} == static_cast<int>(DType::kF32));
static_assert(int{ASHLAR_F16} == static_cast<int>(DType::kF16));
static_assert(int{ASHLAR_BF16} == static_cast<int>(DType::kBF16));
static_assert(int{ASHLAR_I32} == static_cast<int>(DType::kI32));
static_assert(int{ASHLAR_I8} == static_cast<int>(DType::kI8));
static_assert(int{ASHLAR_F8_E4M3} == static_cast<int>(DType::kF8E4M3));
static_assert(int{ASHLAR_Q8_0} == static_cast<int>(DType::kQ8_0));
static_assert(int{ASHLAR_Q4_0} == static_cast<int>(DType::kQ4_0));
static_assert(int{ASHLAR_Q4_1} == static_cast<int>(DType::kQ4_1));
static_assert(int{ASHLAR_Q5_0} == static_cast<int>(DType::kQ5_0));
static_assert(int{ASHLAR_Q5_1} == static_cast<int>(DType::kQ5_1));
static_assert(int{ASHLAR_Q4_K} == static_cast<int>(DType::kQ4_K));
static_assert(int{ASHLAR_Q5_K} == static_cast<int>(DType::kQ5_K));
static_assert(int{ASHLAR_Q6_K} == static_cast<int>(DType::kQ6_K));

constexpr uint32_t kKnownKinds = (1u << kKindNames.size()) - 1;

struct FeatureBit {
  uint32_t bit;
  bool AttentionRow::*member;
};
constexpr std::array<FeatureBit, 14> kFeatureBits = {{
    {ASHLAR_HAS_SINKS, &AttentionRow::sinks},
    {ASHLAR_HAS_WINDOW, &AttentionRow::window},
    {ASHLAR_IS_MLA, &AttentionRow::mla},
    {ASHLAR_HAS_KV_CONNECTOR, &AttentionRow::kv_connector},
    {ASHLAR_IS_BATCH_INVARIANT, &AttentionRow::batch_invariant},
    {ASHLAR_HAS_NON_CAUSAL, &AttentionRow::non_causal},
    {ASHLAR_READS_LAYOUT_STRIDES, &AttentionRow::any_strides},
    {ASHLAR_IS_SPARSE, &AttentionRow::sparse},
    {ASHLAR_HAS_MM_PREFIX, &AttentionRow::mm_prefix},
    {ASHLAR_HAS_HEAD_SCALES, &AttentionRow::head_scales},
    {ASHLAR_HAS_PREFIX_WINDOW, &AttentionRow::prefix_window},
    {ASHLAR_HAS_PCP, &AttentionRow::pcp},
    {ASHLAR_HAS_DCP, &AttentionRow::dcp},
    {ASHLAR_NEEDS_HOST_QUERY_LENGTHS, &AttentionRow::host_query_lengths},
}};
constexpr uint32_t kKnownFeatures = (1u << kFeatureBits.size()) - 1;

uint32_t KnownDTypes() {
  uint32_t bits = 0;
  for (const DTypeInfo& info : kDTypes) bits |= 1u << static_cast<int>(info.type);
  return bits;
}

template <class Enum>
std::vector<Enum> Bits(uint32_t bits) {
  std::vector<Enum> values;
  for (int bit = 0; bit < 32; ++bit) {
    if (bits >> bit & 1u) values.push_back(static_cast<Enum>(bit));
  }
  return values;
}

std::vector<BlockRule> Rules(std::span<const ashlar_block_rule> rules) {
  std::vector<BlockRule> list;
  for (const ashlar_block_rule& rule : rules) {
    if (rule.tokens == 0) break;
    list.push_back({rule.tokens, rule.multiple != 0});
  }
  return list;
}

bool UsableRules(const std::vector<BlockRule>& rules) {
  for (const BlockRule& rule : rules) {
    if (rule.tokens < 0) return false;
  }
  return true;
}

// The number stored in an enum of the C table, which another version may have filled with a value
// that this build's enum does not have.
template <class Enum>
uint32_t Number(const Enum& stored) {
  static_assert(sizeof(Enum) == sizeof(uint32_t));
  uint32_t number;
  std::memcpy(&number, &stored, sizeof number);
  return number;
}

template <size_t N>
std::optional<int> IndexOf(const std::array<std::string_view, N>& names, std::string_view name) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

void AddRows(std::vector<AttentionRow>& rows, std::span<const ashlar_row> table) {
  for (const ashlar_row& row : table) {
    auto read = ReadRow(row, "row table");
    if (!read.ok()) Fail("the rows compiled into ashlar are well formed", Text(read.problems()));
    rows.push_back(*std::move(read));
  }
}

}  // namespace

std::string_view Name(KvKind kind) { return kKindNames.at(static_cast<size_t>(kind)); }

std::optional<KvKind> ParseKvKind(std::string_view name) {
  const auto index = IndexOf(kKindNames, name);
  if (!index) return std::nullopt;
  return static_cast<KvKind>(*index);
}

std::string_view Name(KvLayout layout) { return kLayoutNames.at(static_cast<size_t>(layout) - 1); }

std::optional<KvLayout> ParseKvLayout(std::string_view name) {
  const auto index = IndexOf(kLayoutNames, name);
  if (!index) return std::nullopt;
  return static_cast<KvLayout>(*index + 1);
}

std::string_view Name(Verification level) {
  return kVerificationNames.at(static_cast<size_t>(level));
}

std::string Text(const std::vector<BlockRule>& rules) {
  std::string text;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (i > 0) text += i + 1 == rules.size() ? " or " : ", ";
    text += rules[i].multiple ? fmt::format("a multiple of {}", rules[i].tokens)
                              : std::to_string(rules[i].tokens);
  }
  return text;
}

Result<AttentionRow> ReadRow(const ashlar_row& row, const std::string& place) {
  if (row.name == nullptr || *row.name == '\0' || row.platform == nullptr) {
    return Problem{place, "a row without a name or platform", "", "rebuild the plugin"};
  }
  const auto refuse = [&](std::string found, std::string allowed) {
    return Problem{fmt::format("{} row {}", place, row.name), std::move(found), std::move(allowed),
                   "install plugin and runtime of one version"};
  };
  if ((row.kinds & ~kKnownKinds) != 0) {
    return refuse(fmt::format("kinds {:#x}", row.kinds), fmt::format("bits of {:#x}", kKnownKinds));
  }
  if (((row.dtypes | row.kv_dtypes) & ~KnownDTypes()) != 0) {
    return refuse(fmt::format("dtypes {:#x}, KV dtypes {:#x}", row.dtypes, row.kv_dtypes),
                  fmt::format("bits of {:#x}", KnownDTypes()));
  }
  if ((row.features & ~kKnownFeatures) != 0) {
    return refuse(fmt::format("features {:#x}", row.features),
                  fmt::format("bits of {:#x}", kKnownFeatures));
  }
  if (Number(row.verification) > ASHLAR_PLANNED || Number(row.capability_unit) > ASHLAR_CAP_CPU) {
    return refuse("an unknown verification level or capability unit", "");
  }

  AttentionRow read;
  read.name = row.name;
  read.platform = row.platform;
  read.kinds = Bits<KvKind>(row.kinds);
  read.dtypes = Bits<DType>(row.dtypes);
  read.kv_dtypes = Bits<DType>(row.kv_dtypes);
  for (int32_t size : row.head_sizes) {
    if (size == 0) break;
    read.head_sizes.push_back(size);
  }
  read.head_multiple = row.head_multiple > 0 ? row.head_multiple : 1;
  read.kernel_blocks = Rules(row.kernel_blocks);
  read.manager_blocks = Rules(row.manager_blocks);
  if (!UsableRules(read.kernel_blocks) || !UsableRules(read.manager_blocks)) {
    return refuse("a block rule with a negative size", "positive token counts");
  }
  read.preferred_block = row.preferred_block;
  for (uint8_t layout : row.layouts) {
    if (layout == 0) break;
    if (layout > kLayoutNames.size()) return refuse(fmt::format("layout {}", layout), "1 to 6");
    read.layouts.push_back(static_cast<KvLayout>(layout));
  }
  read.head_slots = row.head_slots;
  for (const FeatureBit& feature : kFeatureBits)
    read.*feature.member = (row.features & feature.bit) != 0;
  read.capability_unit = static_cast<CapabilityUnit>(row.capability_unit);
  read.capability_min = row.capability_min;
  read.capability_max = row.capability_max;
  for (const char* architecture : row.built_for) {
    if (architecture == nullptr) break;
    read.built_for.emplace_back(architecture);
  }
  read.verification = static_cast<Verification>(row.verification);
  return read;
}

const std::vector<AttentionRow>& KnownRows() {
  static const std::vector<AttentionRow> rows = [] {
    std::vector<AttentionRow> all;
    AddRows(all, {ashlar_cpu_rows, static_cast<size_t>(ashlar_cpu_row_count)});
    AddRows(all, {ashlar_cuda_rows, static_cast<size_t>(ashlar_cuda_row_count)});
    AddRows(all, {ashlar_hip_rows, static_cast<size_t>(ashlar_hip_row_count)});
    AddRows(all, {ashlar_reference_rows, static_cast<size_t>(ashlar_reference_row_count)});
    return all;
  }();
  return rows;
}

}  // namespace ashlar
