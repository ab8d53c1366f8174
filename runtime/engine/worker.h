// The engine thread's own: sequences, what each step brings them, and their events.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "engine/engine.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/step_runner.h"
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

  bool idle() const { return scheduler_->idle() && under_way_.empty(); }
  // Steps of all sizes have run; while idle, Step runs one that has not.
  bool warm() const { return runner_->cold() == 0; }
  // How long Step may wait for a request that could be in the next step, since the one under way
  // keeps the device busy. Whoever is told so waits.
  std::chrono::duration<double> Spare();
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
  // Starts the model over what the scheduler picks, then takes in what came of the step before;
  // where the host must see the logits first, of this one too. A failure is a device fault: the
  // caller calls EndAll and no longer steps.
  Status Step();
  // Every request ends so; no prefix is found any more.
  void EndAll(FinishReason reason, const std::string& error);

  void FillStats(EngineStats& stats) const;
  // Hands out the events held.
  void Flush();

 private:
  Worker(const Plan& plan, const Device& device, std::unique_ptr<KvArena> arena,
         const Engine::Options& options);
  // A slice of a step that was started.
  struct Part {
    Sequence* sequence = nullptr;  // null once it has ended
    int admissions = 0;            // of the sequence; it started over since when it has more
    int computed = 0;              // its tokens in the cache after the step
    int first_row = 0, rows = 0;
    int token = -1;  // index of the token that the device samples; -1: the host does, or none
  };
  struct Started {
    std::vector<Part> parts;
    int turn = 0;        // the runner's
    bool ahead = false;  // the next step may start before this one is finished
    bool awaited = false;
    std::span<float> logits;  // what the host samples from; empty when it does not
    StepWork work;
    std::chrono::steady_clock::time_point begun;
    int firsts = 0;  // the runner's, then
  };

  Status Start(std::span<const Slice> slices);
  Status Finish();
  Status Await(Started& step, bool shows);
  void NotePace(const Started& step);
  void Advance(const Started& step, const Part& part);
  void ScorePrompt(Sequence& sequence, const Part& part, std::span<float> rows);
  void Sample(Sequence& sequence, std::span<float> row);
  void Take(Sequence& sequence, int index, TokenLogprob token);
  void Emit(Sequence& sequence, Event event);
  void End(Sequence& sequence, Event event, FinishReason reason);
  std::string WhyImpossible(const Sequence& sequence) const;

  const Plan& plan_;
  const Device& device_;
  Engine::Options options_;
  std::unique_ptr<KvArena> arena_;
  std::unique_ptr<PrefixCache> cache_;
  Pace pace_;
  std::chrono::steady_clock::time_point last_end_;  // of a step
  bool waited_ = false;                             // Spare said so beside the step under way
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<StepRunner> runner_;
  std::deque<Started> under_way_;  // oldest first, at most two
  std::vector<Part> spare_parts_;  // of the last step finished: the memory is used again
  Sampler sampler_;
  std::unordered_map<uint64_t, Sequence*> sequences_;
  using AnyEvent = std::variant<TokenEvent, Event>;
  std::vector<std::pair<std::shared_ptr<EventQueue>, AnyEvent>> held_events_;

  int64_t prompt_tokens_ = 0, cached_prompt_tokens_ = 0, generated_tokens_ = 0, steps_ = 0;
  std::array<int64_t, 4> finished_{};
  double last_step_unix_seconds_ = 0;
};

}  // namespace ashlar
