#include "checkpoint/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/checked.h"

namespace ashlar {
namespace {

std::vector<const TensorInfo*> InFileOrder(std::span<const TensorInfo> tensors) {
  std::vector<const TensorInfo*> order;
  order.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
  return order;
}

}  // namespace

std::string Shown(std::string_view text) {
  constexpr size_t kLimit = 80;
  std::string out;
  for (char c : text.substr(0, kLimit)) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (text.size() > kLimit) out += "...";
  return out;
}

std::string ShownShape(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string TensorPlace(const std::string& path, const TensorInfo& tensor) {
  return fmt::format("{} tensor {} bytes {}..{}", path, Shown(tensor.name), tensor.offset,
                     tensor.offset + tensor.bytes);
}

std::optional<Problem> SortByName(const std::string& path, std::vector<TensorInfo>& tensors) {
  auto by_name = [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; };
  std::sort(tensors.begin(), tensors.end(), by_name);
  auto same = [](const TensorInfo& a, const TensorInfo& b) { return a.name == b.name; };
  auto twice = std::adjacent_find(tensors.begin(), tensors.end(), same);
  if (twice == tensors.end()) return std::nullopt;
  return Problem{TensorPlace(path, *twice), "the name stands twice", "each tensor once",
                 std::string(kDamaged)};
}

std::optional<Problem> CheckLayout(const std::string& path, std::span<const TensorInfo> tensors,
                                   uint64_t data_start, uint64_t file_size, uint64_t alignment) {
  uint64_t end = data_start;
  const TensorInfo* before = nullptr;
  const TensorInfo* cut = nullptr;
  for (const TensorInfo* tensor : InFileOrder(tensors)) {
    uint64_t start = before == nullptr ? data_start : RoundUp(end, alignment);
    if (before != nullptr && tensor->offset < end) {
      return Problem{
          TensorPlace(path, *tensor),
          fmt::format("overlaps tensor {} bytes {}..{}", Shown(before->name), before->offset, end),
          fmt::format("a start at byte {}", start), std::string(kDamaged)};
    }
    if (tensor->offset != start) {
      return Problem{TensorPlace(path, *tensor),
                     fmt::format("starts after a hole at bytes {}..{}", end, tensor->offset),
                     fmt::format("a start at byte {}", start), std::string(kDamaged)};
    }
    before = tensor;
    end = tensor->offset + tensor->bytes;
    if (end > file_size && cut == nullptr) cut = tensor;
  }
  if (cut != nullptr) {
    return Problem{TensorPlace(path, *cut), fmt::format("the file has {} bytes", file_size),
                   fmt::format("{} bytes expected, as its header says", end),
                   std::string(kFetchAgain)};
  }
  uint64_t padded = RoundUp(end, alignment);
  if (file_size > padded) {
    return Problem{
        fmt::format("{} bytes {}..{}", path, end, file_size),
        fmt::format("the file has {} bytes, {} after its last tensor", file_size, file_size - end),
        fmt::format("{} bytes expected, as its header says", end),
        "the file was overwritten or joined with another: fetch it again"};
  }
  return std::nullopt;
}

}  // namespace ashlar
