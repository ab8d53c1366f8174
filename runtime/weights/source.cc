#include "weights/source.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/checked.h"
#include "checkpoint/layout.h"

namespace ashlar {
namespace {

size_t SystemPage() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

Result<std::span<const std::byte>> WeightSource::Open(const TensorInfo& tensor) {
  const MappedFile& file = checkpoint_.files[static_cast<size_t>(tensor.file)];
  const int64_t now = file.CurrentSize();
  if (now != static_cast<int64_t>(file.bytes().size())) {
    return Problem{TensorPlace(file.path(), tensor), fmt::format("the file has {} bytes now", now),
                   fmt::format("{} bytes, as when it was opened", file.bytes().size()),
                   "replace model files by renaming, never in place, and start again"};
  }
  file.Prefetch(tensor.offset, tensor.bytes);
  return checkpoint_.Bytes(tensor);
}

void WeightSource::Keep(const TensorInfo& tensor) {
  constexpr size_t kStep = 8 << 20;  // bytes between two reports
  std::span<const std::byte> bytes = checkpoint_.Bytes(tensor);
  for (size_t begin = 0; begin < bytes.size(); begin += kStep) {
    const size_t end = std::min(begin + kStep, bytes.size());
    for (size_t at = begin; at < end; at += SystemPage())
      static_cast<void>(*static_cast<const volatile std::byte*>(&bytes[at]));
    if (progress_ && end < bytes.size()) progress_(done_ + static_cast<int64_t>(end), total_);
  }
  Count(tensor);
}

void WeightSource::Drop(const TensorInfo& tensor) {
  Count(tensor);
  if (!checkpoint_.on_disk) return;  // memory of the process itself must not be emptied
  const std::byte* begin = checkpoint_.Bytes(tensor).data();
  const uintptr_t first = RoundUp<uintptr_t>(reinterpret_cast<uintptr_t>(begin), SystemPage());
  const uintptr_t last =
      reinterpret_cast<uintptr_t>(begin + tensor.bytes) / SystemPage() * SystemPage();
  if (last <= first) return;
  constexpr uintptr_t kWorthAThread = 1 << 20;
  auto drop = [first, last] {
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  };
  if (last - first < kWorthAThread) return drop();
  if (dropping_.valid()) dropping_.wait();
  dropping_ = std::async(std::launch::async, drop);
}

void WeightSource::Count(const TensorInfo& tensor) {
  done_ += static_cast<int64_t>(tensor.bytes);
  if (progress_) progress_(done_, total_);
}

}  // namespace ashlar
