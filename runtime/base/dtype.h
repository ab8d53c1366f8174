// Element types of weights, activations and KV entries, with their storage. Block types pack
// `elements` values in `bytes`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ashlar {

// The numbers are those of ashlar_dtype in ashlar_plugin.h; runtime/device checks that they agree.
enum class DType : int32_t {
  kF32 = 0,
  kF16,
  kBF16,
  kI32,
  kI8,
  kF8E4M3,  // finite values only: the largest is 448
  kQ8_0 = 16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
};

struct DTypeInfo {
  DType type;
  std::string_view name;  // as in our YAML, JSON and messages
  int elements;           // values in one storage block
  int bytes;              // bytes of one storage block
};

inline constexpr std::array<DTypeInfo, 14> kDTypes = {{
    {DType::kF32, "float32", 1, 4},
    {DType::kF16, "float16", 1, 2},
    {DType::kBF16, "bfloat16", 1, 2},
    {DType::kI32, "int32", 1, 4},
    {DType::kI8, "int8", 1, 1},
    {DType::kF8E4M3, "float8_e4m3", 1, 1},
    {DType::kQ8_0, "q8_0", 32, 34},
    {DType::kQ4_0, "q4_0", 32, 18},
    {DType::kQ4_1, "q4_1", 32, 20},
    {DType::kQ5_0, "q5_0", 32, 22},
    {DType::kQ5_1, "q5_1", 32, 24},
    {DType::kQ4_K, "q4_k", 256, 144},
    {DType::kQ5_K, "q5_k", 256, 176},
    {DType::kQ6_K, "q6_k", 256, 210},
}};

const DTypeInfo& Info(DType type);
std::optional<DType> ParseDType(std::string_view name);

// Bytes of `count` consecutive values; empty when count is no multiple of the block or the size
// does not fit.
std::optional<int64_t> StorageBytes(DType type, int64_t count);

}  // namespace ashlar
