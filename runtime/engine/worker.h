// The engine thread's own: everything that touches the device, and one step at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/batch.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "kv/arena.h"
#include "kv/prefix_cache.h"

namespace ashlar {

// Owned and called by one thread. Events of a step are held until Flush, so that whoever sees a
// request end can also see the Stats that count it.
class Worker {
 public:
  static Result<std::unique_ptr<Worker>> Create(const Plan& plan, const Device& device,
                                                ModelWeights weights,
                                                std::unique_ptr<KvArena> arena,
                                                const Engine::Options& options,
                                                Engine::Parts parts);

  bool idle() const { return scheduler_->idle(); }
  int64_t waiting() const { return scheduler_->waiting(); }
  int64_t waiting_tokens() const { return scheduler_->waiting_tokens(); }
  std::optional<std::chrono::steady_clock::time_point> oldest_arrival() const {
    return scheduler_->oldest_arrival();
  }

  // Answers one token and leaves no trace: weights whose logits are not finite are a Problem.
  Status Rehearse();

  // A request that can never run ends at once with kError.
  void Accept(std::unique_ptr<Sequence> sequence);
  // Nothing when it has already ended.
  void Cancel(uint64_t id);
  // Runs the model once over what the scheduler picks. A failure is a device fault: the caller
  // calls EndAll and no longer steps.
  Status Step();
  // Every request ends so; no prefix is found any more.
  void EndAll(FinishReason reason, const std::string& error);

  void FillStats(EngineStats& stats) const;
  // Hands out the events held.
  void Flush();

 private:
  Worker(const Plan& plan, const Device& device, ModelWeights weights,
         std::unique_ptr<KvArena> arena, const Engine::Options& options);
  Result<std::span<float>> Logits(const StepInput& step);
  void Advance(const Slice& slice, std::span<float> rows);
  void ScorePrompt(Sequence& sequence, const Slice& slice, std::span<float> rows);
  void Sample(Sequence& sequence, std::span<float> row);
  void Emit(Sequence& sequence, Event event);
  void Finish(Sequence& sequence, Event event, FinishReason reason);
  std::string WhyImpossible(const Sequence& sequence) const;

  const Plan& plan_;
  const Device& device_;
  ModelWeights weights_;
  Engine::Options options_;
  std::unique_ptr<KvArena> arena_;
  std::unique_ptr<PrefixCache> cache_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Batch> batch_;
  std::unique_ptr<Forward> forward_;
  Sampler sampler_;
  std::vector<float> host_logits_;  // when the host cannot read device memory
  std::unordered_map<uint64_t, Sequence*> sequences_;
  std::vector<std::pair<std::shared_ptr<EventQueue>, Event>> held_events_;

  int64_t prompt_tokens_ = 0, cached_prompt_tokens_ = 0, generated_tokens_ = 0, steps_ = 0;
  std::array<int64_t, 4> finished_{};
  double last_step_unix_seconds_ = 0;
};

}  // namespace ashlar
