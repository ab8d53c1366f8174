// Rules that both weight formats share: where tensors may lie in a file, and how messages name
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "checkpoint/checkpoint.h"

namespace ashlar {

inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr uint64_t kMaxTensors = 1'000'000;
inline constexpr size_t kMaxTensorName = 512;

inline constexpr std::string_view kFetchAgain =
    "the download was probably interrupted: fetch the file again";
inline constexpr std::string_view kDamaged =
    "the file is damaged or was written by a faulty tool: fetch or convert it again";

// `text` from a file as it may stand in a message: control characters as \xNN, at most 80 bytes.
std::string Shown(std::string_view text);
// "[2, 3]"
std::string ShownShape(std::span<const int64_t> shape);
// "FILE tensor NAME bytes 10..20": the range is that of the whole file, its end excluded.
std::string TensorPlace(const std::string& path, const TensorInfo& tensor);

// Sorts by name, then refuses the first name that stands twice.
std::optional<Problem> SortByName(const std::string& path, std::vector<TensorInfo>& tensors);

// The tensors must follow each other from `data_start` to the end of the file in some order, each
// start rounded up to `alignment`, without overlap or hole. Returns the first breach in file order.
std::optional<Problem> CheckLayout(const std::string& path, std::span<const TensorInfo> tensors,
                                   uint64_t data_start, uint64_t file_size, uint64_t alignment);

}  // namespace ashlar
