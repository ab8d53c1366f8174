// One backend of vLLM as data: what it declares it can do.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/dtype.h"
#include "device/row.h"
#include "plan/refusal.h"

namespace ashlar {

// Names of KV types as vLLM spells them; kNone: the layer states none.
enum class VllmKvDType : uint8_t {
  kNone,
  kAuto,
  kFloat16,
  kBFloat16,
  kFp8,
  kFp8E4M3,
  kFp8E5M2,
  kFp8Inc,
  kFp8DsMla,
  kNvfp4,
  kNvfp4FourOverSix,
  kNvfp4DsMla,
  kTurboquantK8V4,
  kTurboquant4BitNc,
  kUltraquant4Bit,
  kOctaveK3V4,
  kInt4PerTokenHead,
  kInt8PerTokenHead,
  kFp8PerTokenHead,
};
inline constexpr int kVllmKvDTypes = static_cast<int>(VllmKvDType::kFp8PerTokenHead) + 1;
std::string_view Name(VllmKvDType type);
std::optional<VllmKvDType> ParseVllmKvDType(std::string_view name);

// Whether entries are stored in another type than the model computes in.
constexpr bool Quantised(VllmKvDType type) { return type > VllmKvDType::kBFloat16; }
constexpr bool IsTurboquant(VllmKvDType type) {
  return type == VllmKvDType::kTurboquantK8V4 || type == VllmKvDType::kTurboquant4BitNc;
}
constexpr bool IsNvfp4(VllmKvDType type) {
  return type >= VllmKvDType::kNvfp4 && type <= VllmKvDType::kNvfp4DsMla;
}

enum class VllmAttention : uint8_t { kDecoder, kEncoder, kEncoderOnly, kEncoderDecoder };

enum VllmFlag : uint32_t {
  kVllmMla = 1 << 0,
  kVllmSparse = 1 << 1,
  kVllmSinks = 1 << 2,
  kVllmMmPrefix = 1 << 3,
  kVllmHeadScales = 1 << 4,
  kVllmWindow = 1 << 5,
  kVllmPrefixWindow = 1 << 6,
  kVllmNonCausal = 1 << 7,
  kVllmNonCausalDcp = 1 << 8,
  kVllmBatchInvariant = 1 << 9,
  kVllmConnector = 1 << 10,
  kVllmPcp = 1 << 11,
  kVllmDcp = 1 << 12,
  kVllmQueryLengths = 1 << 13,  // device and host may differ
};

// A set of small enum values.
template <class Enum>
constexpr uint32_t Set(std::initializer_list<Enum> values) {
  uint32_t bits = 0;
  for (Enum value : values) bits |= 1u << static_cast<int>(value);
  return bits;
}

// Listed sizes, or multiples of `multiple` from `smallest` to `largest`.
struct VllmHeads {
  std::array<int16_t, 12> sizes{};  // 0 ends
  int multiple = 1, smallest = 1, largest = 1 << 14;
  constexpr bool Accepts(int size) const {
    if (sizes[0] == 0) return size % multiple == 0 && size >= smallest && size <= largest;
    for (int16_t listed : sizes) {
      if (listed == size && size != 0) return true;
    }
    return false;
  }
};

// Which compute capabilities; on ROCm those of the gfx name count.
struct VllmCapability {
  uint32_t majors = 0;  // bit per major; 0: any
  int at_least = 0;     // major * 10 + minor
  int at_most = 1 << 10;
  std::array<std::string_view, 4> gfx{};  // only these, where the device has a gfx name; "" ends
  bool gfx_only = false;                  // and none without one
};

struct VllmRow {
  std::string_view name;
  std::string_view reported = {};  // the name it logs, when another
  uint32_t dtypes = 0;             // Set of DType
  uint32_t kv = 0;                 // Set of VllmKvDType
  VllmHeads heads = {};
  std::array<BlockRule, 8> blocks{};  // 0 tokens ends
  uint32_t flags = 0;                 // VllmFlag
  VllmCapability capability = {};
  uint32_t attention = Set({VllmAttention::kDecoder});
  std::array<KvLayout, 6> layouts{};  // 0 ends; empty: any
  int preferred = 0;                  // its own preference; 0: see VllmPreferredBlock
  bool exact_block = false;           // the manager block must be a kernel block itself

  constexpr bool Has(VllmFlag flag) const { return (flags & flag) != 0; }
  constexpr bool Takes(VllmKvDType type) const {
    return (kv & (1u << static_cast<int>(type))) != 0;
  }
  constexpr bool Takes(DType type) const { return (dtypes & (1u << static_cast<int>(type))) != 0; }
  bool AcceptsBlock(int tokens) const;
};

// The row's preference when `otherwise` is the default: its own, else `otherwise` when it accepts
// that, else its smallest kernel block.
int VllmPreferredBlock(const VllmRow& row, int otherwise);

}  // namespace ashlar
