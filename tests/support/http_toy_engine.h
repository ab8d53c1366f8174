// A scripted engine: every request gets the same ids, one a step. Its thread steps all running
// requests together, as the real one does.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "serve/generator.h"

namespace ashlar::test {

struct ToyScript {
  std::vector<int32_t> ids;  // then the end id; with ignore_eos they start again
  int32_t end_id = 0;
  std::chrono::microseconds step{200};
  int fail_at = -1;  // the step of a request at which the engine reports an error
  std::string fault;
  int64_t queue = 1'000'000;  // requests
};

class ToyEngine final : public Generator {
 public:
  explicit ToyEngine(ToyScript script) : script_(std::move(script)) {
    stats_.groups.resize(2);
    thread_ = std::thread([this] { Loop(); });
  }
  ~ToyEngine() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  void SetScript(ToyScript script) {
    std::lock_guard lock(mutex_);
    script_ = std::move(script);
  }
  Request last_request() const {
    std::lock_guard lock(mutex_);
    return last_;
  }
  int64_t cancelled_while_running() const {
    std::lock_guard lock(mutex_);
    return cancelled_;
  }

  std::variant<uint64_t, SubmitRefusal> Submit(Request request,
                                               std::shared_ptr<EventQueue> events) override {
    std::lock_guard lock(mutex_);
    if (!script_.fault.empty()) return SubmitRefusal::kFault;
    if (refusing_) return SubmitRefusal::kStopping;
    if (static_cast<int64_t>(running_.size()) >= script_.queue) return SubmitRefusal::kQueueFull;
    uint64_t id = ++last_id_;
    stats_.prompt_tokens += static_cast<int64_t>(request.prompt.size());
    last_ = request;
    running_[id] = {std::move(request), std::move(events), 0};
    wake_.notify_all();
    return id;
  }

  void Cancel(uint64_t id) override {
    std::lock_guard lock(mutex_);
    auto found = running_.find(id);
    if (found == running_.end()) return;
    ++cancelled_;
    Finish(found, FinishReason::kCancelled, {});
  }

  void StopAccepting() override {
    std::lock_guard lock(mutex_);
    refusing_ = true;
  }

  EngineStats stats() const override {
    std::lock_guard lock(mutex_);
    EngineStats stats = stats_;
    stats.running = static_cast<int64_t>(running_.size());
    stats.fault = script_.fault;
    for (EngineStats::Group& group : stats.groups) {
      group.blocks = 1000;
      group.free = 1000 - stats.running;
    }
    return stats;
  }

 private:
  struct Running {
    Request request;
    std::shared_ptr<EventQueue> events;
    int made;
  };
  using Iterator = std::map<uint64_t, Running>::iterator;

  void Finish(Iterator at, FinishReason reason, Event event) {
    event.choice = at->second.request.choice;
    event.finish = reason;
    if (reason == FinishReason::kStop) event.stop_id = script_.end_id;
    if (reason == FinishReason::kError) event.error = "the toy broke";
    ++stats_.finished[static_cast<size_t>(reason)];
    at->second.events->Push(std::move(event));
    running_.erase(at);
  }

  TokenLogprob Logprob(int32_t id, int top) const {
    TokenLogprob token{id, -0.5f, {}};
    for (int i = 0; i < top; ++i) token.top.emplace_back((id + i) % 256, -0.5f - 0.25f * i);
    return token;
  }

  void StepOne(Iterator at) {
    Running& run = at->second;
    Event event;
    event.choice = run.request.choice;
    if (run.made == 0 && run.request.sampling.prompt_logprobs >= 0) {
      for (size_t i = 0; i < run.request.prompt.size(); ++i) {
        event.prompt_logprobs.push_back(
            i == 0 ? TokenLogprob{}
                   : Logprob(run.request.prompt[i], run.request.sampling.prompt_logprobs));
      }
    }
    if (run.made == script_.fail_at) return Finish(at, FinishReason::kError, std::move(event));
    size_t size = script_.ids.size();
    bool over = static_cast<size_t>(run.made) >= size && !run.request.ignore_eos;
    if (over) return Finish(at, FinishReason::kStop, std::move(event));
    int32_t id = script_.ids[static_cast<size_t>(run.made) % size];
    event.ids.push_back(id);
    if (run.request.sampling.logprobs >= 0) {
      event.logprobs.push_back(Logprob(id, run.request.sampling.logprobs));
    }
    ++run.made;
    ++stats_.generated_tokens;
    if (run.made == run.request.max_tokens) {
      return Finish(at, FinishReason::kLength, std::move(event));
    }
    run.events->Push(std::move(event));
  }

  void Loop() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      wake_.wait(lock, [this] { return stopping_ || !running_.empty(); });
      for (auto at = running_.begin(); at != running_.end();) StepOne(at++);
      ++stats_.steps;
      wake_.wait_for(lock, script_.step, [this] { return stopping_; });
    }
    while (!running_.empty()) Finish(running_.begin(), FinishReason::kCancelled, {});
  }

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  ToyScript script_;
  std::map<uint64_t, Running> running_;
  EngineStats stats_;
  Request last_;
  uint64_t last_id_ = 0;
  int64_t cancelled_ = 0;
  bool stopping_ = false, refusing_ = false;
  std::thread thread_;
};

}  // namespace ashlar::test
