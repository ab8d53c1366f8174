// What crosses between an HTTP thread and the engine thread: a request one way, events the other.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ashlar {

struct Sampling {
  float temperature = 1;  // 0: greedy; ties go to the lowest id
  int top_k = 0;          // 0: all
  float top_p = 1, min_p = 0;
  std::optional<uint64_t> seed;
  float repetition_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;
  int logprobs = -1;         // top alternatives beside the sampled token's own; -1: none at all
  int prompt_logprobs = -1;  // the same for every prompt token but the first
};

struct Request {
  std::vector<int32_t> prompt;  // never empty
  int choice = 0;               // names it in the events, where several share a queue
  Sampling sampling;
  int max_tokens = 16;
  int min_tokens = 0;             // end and stop ids are not sampled before
  std::vector<int32_t> stop_ids;  // beside the model's own end ids
  bool ignore_eos = false;        // the model's own end ids do not stop
  std::string cache_salt;         // prefixes are shared only among equal salts
};

struct TokenLogprob {
  int32_t id = 0;
  float logprob = 0;
  std::vector<std::pair<int32_t, float>> top;  // best first
};

enum class FinishReason { kStop, kLength, kCancelled, kError };

// Tokens in order; the last event of a request, and only that, has `finish`.
struct Event {
  int choice = 0;  // the request's
  std::vector<int32_t> ids;
  std::vector<TokenLogprob> logprobs;         // one per id when asked for
  std::vector<TokenLogprob> prompt_logprobs;  // once, before the first id; entry 0 has the id only
  std::optional<FinishReason> finish;
  std::optional<int32_t> stop_id;  // the id that stopped it; it is not among `ids`
  int cached_tokens = 0;           // of the prompt, found in the prefix cache
  std::string error;               // with kError: one line for the client
};

// The same for the commonest: one more id and nothing else. A step makes hundreds.
struct TokenEvent {
  int choice = 0;
  int32_t id = 0;
  int cached_tokens = 0;
};

// The events that one HTTP thread waits for: of one request, or of all choices of one. The engine
// pushes and never blocks; the thread pops.
class EventQueue {
 public:
  void Push(Event event);
  void Push(const TokenEvent& event);
  // Waits up to `timeout`; empty when nothing came. What has piled up for a choice is merged into
  // one event; choices take turns.
  std::optional<Event> Pop(std::chrono::milliseconds timeout);

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::map<int, Event> pending_;  // by choice
  int last_ = -1;                 // the choice that was popped last
};

}  // namespace ashlar
