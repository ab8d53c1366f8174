// What runs in the next step: decode first, then prefill in chunks, first come first served; when
// blocks run out the youngest sequence starts over later.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/pace.h"
#include "engine/sequence.h"
#include "kv/prefix_cache.h"

namespace ashlar {

// Tokens computed .. computed + tokens - 1 of one sequence.
struct Slice {
  Sequence* sequence = nullptr;
  int tokens = 0;
  int logits = 0;  // of its last tokens these many have logits; 0 in the middle of a prompt
};

// Owns the sequences. Engine thread only. Invariants:
//   1. running and waiting are both in order of arrival, and all of running is older than waiting;
//   2. a waiting sequence holds no block;
//   3. every step with work runs at least one token, unless it awaits the one before.
class Scheduler {
 public:
  struct Limits {
    int sequences = 0;
    int batch_tokens = 0;
    int logit_rows = 0;  // at least `sequences`
    int64_t context_tokens = 0;
  };
  // `pace`, when there is one, says how much prompt goes beside answers; it outlives the scheduler.
  Scheduler(PrefixCache& cache, const Limits& limits, Pace* pace = nullptr);

  // Whether the sequence could run to its end if it were alone.
  bool CanEverFit(const Sequence& sequence) const;
  void Add(std::unique_ptr<Sequence> sequence);
  // The slices of the next step, with a place in the cache for every token. Valid until the next
  // call. None at all only when there is no work, or what there is awaits the step `under_way`.
  const std::vector<Slice>& Schedule(bool under_way = false);
  // Takes a sequence out and gives its blocks back.
  std::unique_ptr<Sequence> Remove(Sequence* sequence);

  bool idle() const { return running_.empty() && waiting_.empty(); }
  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t waiting_tokens() const { return waiting_tokens_; }
  // Whether the next step may wait for another to come: none is there yet, and all that run answer.
  bool MayWait() const;
  // When the one that has waited longest to run at all came; empty when none waits so.
  std::optional<std::chrono::steady_clock::time_point> oldest_arrival() const;
  int64_t preemptions() const { return preemptions_; }
  // Look-ups of sequences when they first ran, by tokens; each prompt counts once.
  int64_t query_tokens() const { return query_tokens_; }
  int64_t hit_tokens() const { return hit_tokens_; }
  // What this KV group alone would have hit.
  int64_t hit_tokens(int group) const { return group_hit_tokens_[group]; }

  // Any sequence, the oldest first; null when idle.
  Sequence* oldest() const;

 private:
  bool CoverDecode(Sequence* sequence, bool under_way);
  bool AddSlice(Sequence* sequence, int most);
  void LimitPrompts();
  void Preempt();
  bool Admit();
  void GiveBack(Sequence& sequence);

  PrefixCache& cache_;
  Limits limits_;
  Pace* pace_;
  std::vector<std::unique_ptr<Sequence>> running_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<Slice> slices_;
  int budget_ = 0, logits_left_ = 0;  // of the step being put together
  bool admission_blocked_ = false;    // until blocks come back
  int64_t waiting_tokens_ = 0, preemptions_ = 0, query_tokens_ = 0, hit_tokens_ = 0;
  std::vector<int64_t> group_hit_tokens_;
};

}  // namespace ashlar
