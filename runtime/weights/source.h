// Reading a checkpoint's bytes once: fetched ahead, counted, and let go of when a plugin has its
// own copy.
#pragma once

#include <cstdint>
#include <functional>
#include <future>

#include "checkpoint/checkpoint.h"
#include "weights/weights.h"

namespace ashlar {

class WeightSource {
 public:
  // `total`: bytes of all tensors that will be read.
  WeightSource(const Checkpoint& checkpoint, int64_t total, const LoadProgress& progress)
      : checkpoint_(checkpoint), total_(total), progress_(progress) {}

  // The tensor's bytes, on their way from the disk. Refuses a file that changed size since it was
  // opened: reading past its new end would be a bus error.
  Result<std::span<const std::byte>> Open(const TensorInfo& tensor);
  // The bytes stay in use: waits until they are in memory, so that the first request does not.
  void Keep(const TensorInfo& tensor);
  // The bytes were copied: the process holds them no longer (the page cache may). Another thread
  // lets go of them, one tensor at a time; all are gone when the source is.
  void Drop(const TensorInfo& tensor);

 private:
  void Count(const TensorInfo& tensor);

  const Checkpoint& checkpoint_;
  int64_t total_, done_ = 0;
  const LoadProgress& progress_;
  std::future<void> dropping_;
};

}  // namespace ashlar
