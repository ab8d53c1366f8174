// Weights on their way to the device: several threads fill one pinned buffer while the other one is
// copied, so that reading the file, converting and the transfer overlap.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "gpu.h"

namespace ashlar::gpu_kernels {

// Owned by a device, used by one thread at a time. Allocates at its first use and keeps what it
// has.
class Staging {
 public:
  ~Staging();

  // Fills `rows` rows of `row_bytes` each at device address `to`; fill(first, count, out) writes
  // rows of the host's and is called from several threads at once. Returns when all has been
  // filled; what is launched later on any stream finds it in place.
  using Fill = std::function<void(int64_t first, int64_t count, char* out)>;
  gpu::Error Upload(char* to, int64_t rows, int64_t row_bytes, const Fill& fill);

  // Brings the rows to `landing`, LandingBytes of the device's, as many at a time as it holds, and
  // each time calls use(first, count), which launches on the null stream what reads them there.
  using Use = std::function<gpu::Error(int64_t first, int64_t count)>;
  gpu::Error Land(char* landing, int64_t rows, int64_t row_bytes, const Fill& fill, const Use& use);
  static int64_t LandingBytes(int64_t row_bytes);

 private:
  struct Half {
    void* memory = nullptr;
    gpu::Event copied = nullptr;
    bool in_flight = false;
  };
  // Calls send(first, count, from) for rows that have been filled.
  using Send = std::function<gpu::Error(int64_t first, int64_t count, const void* from)>;
  gpu::Error Carry(int64_t rows, int64_t row_bytes, const Fill& fill, const Send& send);
  gpu::Error Prepare(int64_t bytes);
  gpu::Error WaitFor(Half& half);

  std::array<Half, 2> halves_;
  int64_t half_bytes_ = 0;
  int turn_ = 0;  // of the halves, over all uploads
};

}  // namespace ashlar::gpu_kernels
