// Where other threads leave requests and cancellations for the engine thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "engine/sequence.h"

namespace ashlar {

enum class SubmitRefusal { kQueueFull, kStopping, kFault };

// Any thread, unless a function says otherwise.
class Intake {
 public:
  struct Limits {
    int64_t queued_tokens = 0;  // of prompts that wait; a single one may be longer
    int64_t queued_requests = 0;
    double queue_seconds = 30;  // once one has waited longer, new ones are refused
  };
  explicit Intake(const Limits& limits) : limits_(limits) {}

  std::variant<uint64_t, SubmitRefusal> Submit(Request request, std::shared_ptr<EventQueue> events);
  void Cancel(uint64_t id);
  // From now on Submit refuses for this reason; a fault outlasts a stop.
  void Refuse(SubmitRefusal reason);
  // The engine thread ends.
  void Stop();

  struct Work {
    std::vector<std::unique_ptr<Sequence>> arrived;  // ids grow
    std::vector<uint64_t> cancelled;
    bool stop = false;
    bool empty() const { return arrived.empty() && cancelled.empty() && !stop; }
  };
  // What the scheduler still holds unstarted, for the limits.
  struct Held {
    int64_t requests = 0, tokens = 0;
    std::optional<std::chrono::steady_clock::time_point> oldest;
  };
  // Engine thread: takes what has come, sleeping until something does, at most for `patience`.
  // Fills `work` in place to keep its memory.
  void Take(std::chrono::duration<double> patience, const Held& held, Work& work);

 private:
  Limits limits_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Work work_;
  bool refusing_ = false;
  SubmitRefusal refusal_ = SubmitRefusal::kStopping;
  uint64_t next_id_ = 1;
  int64_t arrived_tokens_ = 0;
  Held held_;  // in the scheduler, as of the last Take
};

}  // namespace ashlar
