#include "device.h"

#include <sys/mman.h>

#include <utility>

#include "cpu_count.h"

namespace ashlar::cpu {
namespace {

constexpr int64_t kHugePage = 2 << 20;

ThreadPool MakePool(int threads) {
  const UsableCpus usable = FindUsableCpus();
  const int count = threads > 0 ? threads : usable.threads;
  // Fewer threads than cores, and threads on a machine so small that something else always wants a
  // core of theirs, are better moved by the system around whatever else runs.
  constexpr int kLeastPinned = 4;
  const bool pin = count >= kLeastPinned && count == static_cast<int>(usable.cores.size());
  return ThreadPool(count, usable.cores, pin);
}

}  // namespace

Pages::Pages(int64_t bytes) {
  if (bytes <= 0) return;
  const int64_t unit = bytes >= kHugePage ? kHugePage : 4096;
  const int64_t whole = (bytes + unit - 1) / unit * unit;
  const int64_t extra = unit == kHugePage ? kHugePage : 0;  // to cut out an aligned part
  void* p =
      mmap(nullptr, whole + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return;
  char* begin = static_cast<char*>(p);
  if (extra > 0) {
    const int64_t skip = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
    if (skip > 0) munmap(begin, skip);
    if (extra - skip > 0) munmap(begin + skip + whole, extra - skip);
    begin += skip;
    madvise(begin, whole, MADV_HUGEPAGE);
  }
  data_ = begin;
  bytes_ = whole;
}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Slabs::Part Slabs::Take(int64_t bytes) {
  constexpr int64_t kSlab = 32 << 20;
  const int64_t size = (bytes + 63) / 64 * 64;
  if (current_ == nullptr || used_ + size > current_->bytes()) {
    auto slab = std::make_shared<Pages>(size > kSlab ? size : kSlab);
    if (slab->data() == nullptr) return {};
    // The piece with more room left goes on being used.
    if (size > kSlab / 2 && current_ != nullptr) return {slab, slab->data()};
    current_ = std::move(slab);
    used_ = 0;
  }
  void* data = static_cast<char*>(current_->data()) + used_;
  used_ += size;
  return {current_, data};
}

void* Scratch::Bytes(int64_t bytes) {
  if (bytes > pages_.bytes()) {
    pages_ = Pages();
    pages_ = Pages(bytes + bytes / 4);
  }
  return pages_.data();
}

}  // namespace ashlar::cpu

ashlar_device::ashlar_device(const ashlar::cpu::KernelTable& table, int threads,
                             bool only_invariant)
    : pool(ashlar::cpu::MakePool(threads)),
      kernels(table),
      per_thread(pool.threads()),
      invariant(only_invariant) {}
