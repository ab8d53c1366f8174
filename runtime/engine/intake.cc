#include "engine/intake.h"

#include <utility>

namespace ashlar {

std::variant<uint64_t, SubmitRefusal> Intake::Submit(Request request,
                                                     std::shared_ptr<EventQueue> events) {
  auto sequence = std::make_unique<Sequence>();
  sequence->tokens = std::move(request.prompt);
  sequence->prompt_tokens = static_cast<int>(sequence->tokens.size());
  sequence->request = std::move(request);
  sequence->events = std::move(events);
  sequence->arrived = std::chrono::steady_clock::now();
  int64_t tokens = sequence->prompt_tokens;
  uint64_t id;
  {
    std::lock_guard lock(mutex_);
    if (refusing_) return refusal_;
    int64_t queued = held_.requests + static_cast<int64_t>(work_.arrived.size());
    int64_t queued_tokens = held_.tokens + arrived_tokens_;
    std::chrono::duration<double> longest_wait(0);
    if (held_.oldest) longest_wait = sequence->arrived - *held_.oldest;
    bool full = queued >= limits_.queued_requests ||
                (queued > 0 && queued_tokens + tokens > limits_.queued_tokens) ||
                longest_wait.count() > limits_.queue_seconds;
    if (full) return SubmitRefusal::kQueueFull;
    id = sequence->id = next_id_++;
    arrived_tokens_ += tokens;
    work_.arrived.push_back(std::move(sequence));
  }
  wake_.notify_one();
  return id;
}

void Intake::Cancel(uint64_t id) {
  {
    std::lock_guard lock(mutex_);
    if (id == 0 || id >= next_id_) return;
    work_.cancelled.push_back(id);
  }
  wake_.notify_one();
}

void Intake::Refuse(SubmitRefusal reason) {
  std::lock_guard lock(mutex_);
  if (refusing_ && refusal_ == SubmitRefusal::kFault) return;
  refusing_ = true;
  refusal_ = reason;
}

void Intake::Stop() {
  {
    std::lock_guard lock(mutex_);
    work_.stop = true;
  }
  wake_.notify_one();
}

void Intake::Take(std::chrono::duration<double> patience, const Held& held, Work& work) {
  work.arrived.clear();
  work.cancelled.clear();
  std::unique_lock lock(mutex_);
  held_ = held;
  if (patience.count() > 0) wake_.wait_for(lock, patience, [this] { return !work_.empty(); });
  held_.requests += static_cast<int64_t>(work_.arrived.size());
  held_.tokens += arrived_tokens_;
  if (!held_.oldest && !work_.arrived.empty()) held_.oldest = work_.arrived.front()->arrived;
  arrived_tokens_ = 0;
  std::swap(work.arrived, work_.arrived);
  std::swap(work.cancelled, work_.cancelled);
  work.stop = work_.stop;
}

}  // namespace ashlar
