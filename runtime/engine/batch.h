// The arrays of one step, in memory that the device reads, and the ids that come back.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "engine/scheduler.h"
#include "kv/prefix_cache.h"
#include "model/forward.h"

namespace ashlar {

// A step made larger than its slices, so that all of one shape have their arrays at the same
// addresses and one graph runs them. What fills it up are idle sequences, alike in length but for a
// token: they write to no block, attend to nothing when they have one token, and each has a row of
// logits, which nobody reads.
struct StepShape {
  int sequences = 0, tokens = 0;       // idle ones included
  std::vector<int64_t> table_strides;  // kernel blocks, by KV group

  auto operator<=>(const StepShape&) const = default;
};

// What the device runs over.
struct StepArrays {
  StepInput input;
  int32_t* ids = nullptr;              // input.ids; negative ones refer to the step before
  const ashlar_draw* draws = nullptr;  // [logit_rows]
};

// Owned by the engine thread. Allocates once, for the largest step. Up to two steps may be under
// way: the host memory that one was filled from is written again two steps later.
class Batch {
 public:
  struct Limits {
    int sequences = 0, tokens = 0, logit_rows = 0;
    int64_t context_tokens = 0;
  };
  static Result<std::unique_ptr<Batch>> Create(const Device& device, const PrefixCache& cache,
                                               const Limits& limits);

  // The smallest of a few shapes that holds these slices: single tokens, or one short prompt to its
  // end. None for others.
  std::optional<StepShape> ShapeFor(std::span<const Slice> slices) const;
  // What so many idle sequences make up, of so many tokens in all.
  StepShape IdleShape(int sequences, int tokens) const;
  // Sequences in the order of the slices; logits rows too. Valid until the next call.
  Result<const StepArrays*> Fill(std::span<const Slice> slices, const StepShape* shape = nullptr);

  // Where a step's sampled ids stand on the device, a row each.
  int32_t* sampled() const { return static_cast<int32_t*>(sampled_.data()); }
  // Starts the copy of that many of them to the host; `turn` names the memory that it goes to.
  Status Fetch(int rows, int turn) const;
  // Once the copy is done.
  std::span<const int32_t> fetched(int turn) const {
    return {reinterpret_cast<const int32_t*>(fetched_[turn].data()),
            static_cast<size_t>(limits_.logit_rows)};
  }

 private:
  Batch(const Device& device, const PrefixCache& cache, const Limits& limits);
  template <class T>
  T* Place(int64_t count, const T** device_address);
  void FillTokens(std::span<const Slice> slices, const StepShape* shape);
  void FillGroup(std::span<const Slice> slices, int group, const StepShape* shape);
  int64_t LargestStepBytes() const;
  int64_t LargestStride(int group) const;

  // What a row of a block table in host memory holds since the last fill there.
  struct Row {
    uint64_t sequence = 0;
    int admissions = 0;
    size_t entries = 0;  // manager blocks
  };
  struct Table {
    int32_t* at = nullptr;
    int64_t stride = 0;
    std::vector<Row> rows;
  };

  const Device& device_;
  const PrefixCache& cache_;
  Limits limits_;
  Buffer buffer_, sampled_;
  std::array<HostBuffer, 2> staging_;  // empty when the host writes device memory itself
  std::array<HostBuffer, 2> fetched_;
  std::array<std::vector<Table>, 2> tables_;  // by turn and KV group
  int turn_ = 0;
  std::byte* host_ = nullptr;
  int64_t used_ = 0;
  StepArrays arrays_;
};

}  // namespace ashlar
