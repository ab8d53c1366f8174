#include "staging.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace ashlar::gpu_kernels {
namespace {

#if defined(ASHLAR_GPU_HOST)
constexpr int64_t kHalfBytes = 16 << 10;  // so that small matrices take several turns
#else
constexpr int64_t kHalfBytes = 32 << 20;
#endif
constexpr int64_t kThreadBytes = 1 << 20;  // what is worth a thread
constexpr int64_t kMostThreads = 8;        // beyond it memory, not the cores, is the limit

// fill() over [first, first + count), shared out by whole rows.
void FillTogether(const Staging::Fill& fill, int64_t first, int64_t count, int64_t row_bytes,
                  char* out) {
  const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  const int64_t wanted =
      std::clamp<int64_t>(count * row_bytes / kThreadBytes, 1, std::min(cores, kMostThreads));
  const int64_t each = (count + wanted - 1) / wanted;
  std::vector<std::thread> threads;
  for (int64_t at = each; at < count; at += each) {
    threads.emplace_back(fill, first + at, std::min(each, count - at), out + at * row_bytes);
  }
  fill(first, std::min(each, count), out);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

Staging::~Staging() {
  for (Half& half : halves_) {
    (void)WaitFor(half);
    if (half.memory != nullptr) (void)gpu::FreePinned(half.memory);
    if (half.copied != nullptr) (void)gpu::DestroyEvent(half.copied);
  }
}

gpu::Error Staging::Prepare(int64_t bytes) {
  if (bytes <= half_bytes_) return gpu::kSuccess;
  for (Half& half : halves_) {
    gpu::Error error = WaitFor(half);
    if (error != gpu::kSuccess) return error;
    if (half.memory != nullptr) (void)gpu::FreePinned(half.memory);
    half.memory = nullptr;
    error = gpu::AllocPinned(&half.memory, static_cast<size_t>(bytes));
    if (error == gpu::kSuccess && half.copied == nullptr) error = gpu::CreateEvent(&half.copied);
    if (error != gpu::kSuccess) return error;
  }
  half_bytes_ = bytes;
  return gpu::kSuccess;
}

gpu::Error Staging::WaitFor(Half& half) {
  if (!half.in_flight) return gpu::kSuccess;
  half.in_flight = false;
  return gpu::Wait(half.copied);
}

gpu::Error Staging::Carry(int64_t rows, int64_t row_bytes, const Fill& fill, const Send& send) {
  gpu::Error error = Prepare(LandingBytes(row_bytes));
  const int64_t step = LandingBytes(row_bytes) / row_bytes;
  for (int64_t first = 0; first < rows && error == gpu::kSuccess; first += step, turn_ ^= 1) {
    Half& half = halves_[static_cast<size_t>(turn_)];
    const int64_t count = std::min(step, rows - first);
    error = WaitFor(half);
    if (error != gpu::kSuccess) break;
    FillTogether(fill, first, count, row_bytes, static_cast<char*>(half.memory));
    error = send(first, count, half.memory);
    if (error == gpu::kSuccess) error = gpu::Record(half.copied, nullptr);
    half.in_flight = error == gpu::kSuccess;
  }
  return error;
}

gpu::Error Staging::Upload(char* to, int64_t rows, int64_t row_bytes, const Fill& fill) {
  return Carry(rows, row_bytes, fill, [&](int64_t first, int64_t count, const void* from) {
    return gpu::CopyIn(to + first * row_bytes, from, static_cast<size_t>(count * row_bytes),
                       nullptr);
  });
}

gpu::Error Staging::Land(char* landing, int64_t rows, int64_t row_bytes, const Fill& fill,
                         const Use& use) {
  return Carry(rows, row_bytes, fill, [&](int64_t first, int64_t count, const void* from) {
    const gpu::Error error =
        gpu::CopyIn(landing, from, static_cast<size_t>(count * row_bytes), nullptr);
    return error == gpu::kSuccess ? use(first, count) : error;
  });
}

int64_t Staging::LandingBytes(int64_t row_bytes) { return std::max(kHalfBytes, row_bytes); }

}  // namespace ashlar::gpu_kernels
