// Requests to steps to ids. One thread owns the device, the arena, the pools and every sequence;
// other threads only submit, cancel and read the last published Stats.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "engine/intake.h"
#include "engine/request.h"
#include "kv/arena.h"
#include "kv/prefix_tree.h"
#include "model/forward.h"
#include "plan/plan.h"

namespace ashlar {

// A value copied out after each step; counters only grow.
struct EngineStats {
  int64_t running = 0, waiting = 0;
  int64_t waiting_tokens = 0;
  struct Group {
    int64_t planned_blocks = 0;  // as many as `blocks`, unless less memory was left
    int64_t blocks = 0, free = 0, cached = 0;
    int64_t evictions = 0;
    int64_t hit_tokens = 0, query_tokens = 0;  // of look-ups; what this group alone would have hit
  };
  std::vector<Group> groups;  // by KV group index
  int64_t prompt_tokens = 0, cached_prompt_tokens = 0, generated_tokens = 0;
  int64_t preemptions = 0, steps = 0;
  std::array<int64_t, 4> finished{};                       // by FinishReason
  int64_t prefix_query_tokens = 0, prefix_hit_tokens = 0;  // of look-ups; what all groups hit
  int64_t prefix_names = 0;  // blocks of tokens that the prefix cache tells apart now
  double last_step_unix_seconds = 0;
  bool warm = false;  // no size of step runs for the first time any more
  std::string fault;  // set once the device failed or hangs; nothing runs after it
};

class Engine {
 public:
  struct Options {
    int max_sequences = 64;
    int batch_tokens = 2048;
    int64_t queued_tokens = 200'000;
    int queued_requests = 1024;
    double queue_seconds = 30;   // once one has waited longer, new ones are refused
    double hang_seconds = 60;    // a step that takes longer is a fault of the device
    double check_seconds = 300;  // between two idle checks
    bool prefix_cache = true;
    // Of prefix hashes and of requests without a seed; the caller takes it from the system's
    // random source, or fixes it for a repeatable run.
    uint64_t seed = 0;
  };

  // Stand-ins for what Start makes itself.
  struct Parts {
    std::unique_ptr<Forward> forward;  // for at least batch_tokens tokens and LogitRows rows
    PrefixHash prefix_hash = Sha256;
    // Runs on the engine's thread when nothing else has for a while: the device is the caller's
    // until it returns. A problem is a fault of the device.
    std::function<Status()> idle_check = nullptr;
  };

  // Rows of logits that a step may ask for.
  static int LogitRows(const Options& options) { return options.max_sequences; }

  // Takes over everything it needs; the plan, config and device outlive it. Answers one token, so
  // that weights with a NaN are refused here, and starts the thread.
  static Result<std::unique_ptr<Engine>> Start(const Plan& plan, const Device& device,
                                               ModelWeights weights, std::unique_ptr<KvArena> arena,
                                               const Options& options);
  static Result<std::unique_ptr<Engine>> Start(const Plan& plan, const Device& device,
                                               ModelWeights weights, std::unique_ptr<KvArena> arena,
                                               const Options& options, Parts parts);
  // Ends every request as cancelled, then joins.
  ~Engine();

  // Any thread. The request's events go to `events`, which may be shared by choices of one request,
  // until one has `finish`. The returned id is never reused.
  std::variant<uint64_t, SubmitRefusal> Submit(Request request, std::shared_ptr<EventQueue> events);
  // Any thread, any id, any number of times. A running request ends with kCancelled before the next
  // step.
  void Cancel(uint64_t id);
  // Any thread. Refuses new requests with kStopping from now on; running ones go on.
  void StopAccepting();
  // Any thread.
  EngineStats stats() const;

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar
