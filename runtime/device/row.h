// The attention rows of every platform as C++ values: what a backend can do, as data. Planning
// reads only this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/json.h"

namespace ashlar {

// What is cached for a layer; the strings are those of docs/glossary.md and stand in YAML, status,
// metrics and events.
enum class KvKind : int32_t {
  kFull = 0,
  kMla,
  kSliding,
  kSlidingMla,
  kChunkedLocal,
  kSinkFull,
  kCross,
  kEncoderOnly,
  kMamba,
};
std::string_view Name(KvKind kind);
std::optional<KvKind> ParseKvKind(std::string_view name);

// Physical order of layer, block, head slot, token, content; outermost first.
enum class KvLayout : int32_t { kLBHNC = 1, kLBNHC, kLHBNC, kBLHNC, kBLNHC, kBHLNC };
std::string_view Name(KvLayout layout);
std::optional<KvLayout> ParseKvLayout(std::string_view name);

enum class Verification : int32_t { kTested = 0, kCompileVerified, kPlanned };
std::string_view Name(Verification level);

// A block size in tokens: exactly `tokens`, or any positive multiple of it.
struct BlockRule {
  int tokens = 0;
  bool multiple = false;
  bool Accepts(int size) const {
    return multiple ? size > 0 && size % tokens == 0 : size == tokens;
  }
  bool operator==(const BlockRule&) const = default;
};
std::string Text(const std::vector<BlockRule>& rules);  // "a multiple of 16", "64 or 128"

enum class CapabilityUnit : int32_t { kAny = 0, kCuda, kGfx, kCpu };

// Mirror of ashlar_row; meanings are stated there.
struct AttentionRow {
  std::string name;
  std::string platform;
  std::vector<KvKind> kinds;
  std::vector<DType> dtypes;
  std::vector<DType> kv_dtypes;
  std::vector<int> head_sizes;
  int head_multiple = 1;
  std::vector<BlockRule> kernel_blocks;
  std::vector<BlockRule> manager_blocks;
  int preferred_block = 0;
  std::vector<KvLayout> layouts;
  int head_slots = 0;
  bool sinks = false, window = false, mla = false, kv_connector = false, batch_invariant = false,
       non_causal = false;
  bool any_strides = false;
  bool sparse = false, mm_prefix = false, head_scales = false, prefix_window = false, pcp = false,
       dcp = false, host_query_lengths = false;
  CapabilityUnit capability_unit = CapabilityUnit::kAny;
  uint32_t capability_min = 0, capability_max = 0;
  std::vector<std::string> built_for;
  Verification verification = Verification::kTested;

  bool operator==(const AttentionRow&) const = default;
};

// The rows compiled into this binary for every platform it knows, whether or not the plugin is
// installed.
const std::vector<AttentionRow>& KnownRows();

Json ToJson(const AttentionRow& row);
Result<AttentionRow> AttentionRowFromJson(const Json& json, std::string_view place);

}  // namespace ashlar
