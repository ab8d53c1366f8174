// The arrays of one step, in memory that the device reads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "engine/scheduler.h"
#include "kv/prefix_cache.h"
#include "model/forward.h"

namespace ashlar {

// Owned by the engine thread. Allocates once, for the largest step.
class Batch {
 public:
  struct Limits {
    int sequences = 0, tokens = 0, logit_rows = 0;
    int64_t context_tokens = 0;
  };
  static Result<std::unique_ptr<Batch>> Create(const Device& device, const PrefixCache& cache,
                                               const Limits& limits);

  // Sequences in the order of the slices; logits rows too. Valid until the next call.
  Result<const StepInput*> Fill(std::span<const Slice> slices);

 private:
  explicit Batch(const Device& device) : device_(device) {}
  template <class T>
  T* Place(int64_t count, const T** device_address);
  void FillTokens(std::span<const Slice> slices);
  void FillGroup(std::span<const Slice> slices, int group);

  const Device& device_;
  Buffer buffer_;
  std::vector<std::byte> staging_;  // empty when the host writes device memory itself
  std::byte* host_ = nullptr;
  int64_t used_ = 0;
  StepInput input_;
};

}  // namespace ashlar
