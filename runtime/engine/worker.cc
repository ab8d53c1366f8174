#include "engine/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"

namespace ashlar {
namespace {

std::vector<KvGroupShape> Shapes(const std::vector<KvGroup>& groups) {
  std::vector<KvGroupShape> shapes;
  for (const KvGroup& group : groups) {
    shapes.push_back({group.block_tokens, group.kernel_block_tokens, group.window, group.blocks});
  }
  return shapes;
}

double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Worker::Worker(const Plan& plan, const Device& device, ModelWeights weights,
               std::unique_ptr<KvArena> arena, const Engine::Options& options)
    : plan_(plan),
      device_(device),
      weights_(std::move(weights)),
      options_(options),
      arena_(std::move(arena)) {}

Result<std::unique_ptr<Worker>> Worker::Create(const Plan& plan, const Device& device,
                                               ModelWeights weights, std::unique_ptr<KvArena> arena,
                                               const Engine::Options& options,
                                               Engine::Parts parts) {
  std::unique_ptr<Worker> worker(
      new Worker(plan, device, std::move(weights), std::move(arena), options));
  int logit_rows = Engine::LogitRows(options);
  worker->cache_ = std::make_unique<PrefixCache>(
      Shapes(worker->arena_->groups()),
      PrefixCache::Options{options.prefix_cache, options.seed, std::move(parts.prefix_hash)});
  worker->scheduler_ = std::make_unique<Scheduler>(
      *worker->cache_, Scheduler::Limits{options.max_sequences, options.batch_tokens, logit_rows,
                                         plan.context_length});
  auto batch =
      Batch::Create(device, *worker->cache_,
                    {options.max_sequences, options.batch_tokens, logit_rows, plan.context_length});
  if (!batch.ok()) return batch.problems();
  worker->batch_ = std::move(*batch);
  if (parts.forward) {
    worker->forward_ = std::move(parts.forward);
    return worker;
  }
  auto forward = Forward::Create(plan.model, device, options.batch_tokens, logit_rows);
  if (!forward.ok()) return forward.problems();
  worker->forward_ = std::move(*forward);
  return worker;
}

Status Worker::Rehearse() {
  auto sequence = std::make_unique<Sequence>();
  sequence->tokens = {std::max(plan_.model.bos, 0)};
  sequence->prompt_tokens = 1;
  sequence->request.max_tokens = 1;
  sequence->events = std::make_shared<EventQueue>();
  sequence->admitted = true;  // not counted as a look-up
  Accept(std::move(sequence));
  while (!idle()) {
    if (auto step = Step(); !step.ok()) return step;
  }
  std::string error = std::move(held_events_.back().second.error);
  held_events_.clear();
  cache_->ForgetAll();
  prompt_tokens_ = generated_tokens_ = steps_ = 0;
  finished_ = {};
  last_step_unix_seconds_ = 0;
  if (error.empty()) return Done{};
  return Problem{"engine: the first token", std::move(error), "finite logits",
                 "check the weights; a float16 cache may be too narrow for them"};
}

void Worker::Accept(std::unique_ptr<Sequence> sequence) {
  const Request& request = sequence->request;
  if (!request.ignore_eos) sequence->ends = plan_.model.eos;
  sequence->ends.insert(sequence->ends.end(), request.stop_ids.begin(), request.stop_ids.end());
  sequence->seed = request.sampling.seed.value_or(MixSeed(options_.seed, sequence->id));
  if (std::string why = WhyImpossible(*sequence); !why.empty()) {
    ++finished_[static_cast<size_t>(FinishReason::kError)];
    Event event;
    event.choice = request.choice;
    event.finish = FinishReason::kError;
    event.error = std::move(why);
    held_events_.emplace_back(std::move(sequence->events), std::move(event));
    return;
  }
  prompt_tokens_ += sequence->prompt_tokens;
  sequences_.emplace(sequence->id, sequence.get());
  scheduler_->Add(std::move(sequence));
}

// The HTTP side refuses all of these with better words; here they only must not do harm.
std::string Worker::WhyImpossible(const Sequence& sequence) const {
  if (sequence.tokens.empty()) return "the prompt is empty";
  if (sequence.prompt_tokens > plan_.context_length) {
    return fmt::format("the prompt has {} tokens: the context holds {}", sequence.prompt_tokens,
                       plan_.context_length);
  }
  for (int32_t id : sequence.tokens) {
    if (id >= 0 && id < plan_.model.vocab) continue;
    return fmt::format("token id {} is not in the vocabulary of {}", id, plan_.model.vocab);
  }
  if (!scheduler_->CanEverFit(sequence)) {
    return fmt::format("{} prompt and {} new tokens need more KV blocks than there are",
                       sequence.prompt_tokens, sequence.request.max_tokens);
  }
  return "";
}

void Worker::Cancel(uint64_t id) {
  auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  Finish(*found->second, {}, FinishReason::kCancelled);
}

Status Worker::Step() {
  const std::vector<Slice>& slices = scheduler_->Schedule();
  if (slices.empty()) return Done{};
  auto step = batch_->Fill(slices);
  if (!step.ok()) return step.problems();
  auto logits = Logits(**step);
  if (!logits.ok()) return logits.problems();

  size_t vocab = static_cast<size_t>(plan_.model.vocab), row = 0;
  for (const Slice& slice : slices) {
    size_t rows = static_cast<size_t>(slice.logits);
    Advance(slice, logits->subspan(row * vocab, rows * vocab));
    row += rows;
  }
  ++steps_;
  last_step_unix_seconds_ = UnixSeconds();
  return Done{};
}

// [logit_rows, vocab] where the host may read and write.
Result<std::span<float>> Worker::Logits(const StepInput& step) {
  auto logits = forward_->Run(weights_, arena_->layers(), step);
  if (!logits.ok()) return logits.problems();
  size_t count = static_cast<size_t>(step.logit_rows) * static_cast<size_t>(plan_.model.vocab);
  if (device_.plugin().memory() == "host") {
    if (auto done = device_.Sync(); !done.ok()) return done.problems();
    return std::span(static_cast<float*>(logits->data), count);
  }
  host_logits_.resize(std::max(host_logits_.size(), count));
  std::span<float> host(host_logits_.data(), count);
  if (auto copied = device_.CopyOut(std::as_writable_bytes(host), logits->data); !copied.ok()) {
    return copied.problems();
  }
  if (auto done = device_.Sync(); !done.ok()) return done.problems();
  return host;
}

void Worker::Advance(const Slice& slice, std::span<float> rows) {
  Sequence& sequence = *slice.sequence;
  if (!AllFinite(rows)) {
    // What led here is doubtful, from the first token on: nobody else may build on it.
    cache_->Forget(sequence.path);
    Event event;
    event.error = "the model produced a value that is not a finite number";
    return Finish(sequence, std::move(event), FinishReason::kError);
  }
  sequence.computed += slice.tokens;
  cache_->Extend(sequence.path,
                 std::span(sequence.tokens).first(static_cast<size_t>(sequence.computed)));
  cache_->Publish(sequence.path, sequence.computed, sequence.tables);
  for (BlockTable& table : sequence.tables) table.FreeBehind(sequence.computed);

  if (slice.logits == 0) return;
  if (sequence.scores_prompt()) ScorePrompt(sequence, slice, rows);
  if (sequence.remaining() > 0) return;
  size_t vocab = static_cast<size_t>(plan_.model.vocab);
  Sample(sequence, rows.last(vocab));
}

// The row of position i scores the prompt's token i + 1.
void Worker::ScorePrompt(Sequence& sequence, const Slice& slice, std::span<float> rows) {
  size_t vocab = static_cast<size_t>(plan_.model.vocab);
  int first = sequence.computed - slice.logits;
  if (sequence.prompt_logprobs.empty()) {
    sequence.prompt_logprobs.emplace_back().id = sequence.tokens.front();  // nothing predicts it
  }
  for (int row = 0; row < slice.logits; ++row) {
    int scored = first + row + 1;
    if (scored >= sequence.prompt_tokens) break;
    sequence.prompt_logprobs.push_back(
        sampler_.Score(rows.subspan(static_cast<size_t>(row) * vocab, vocab),
                       sequence.tokens[scored], sequence.request.sampling.prompt_logprobs));
  }
}

void Worker::Sample(Sequence& sequence, std::span<float> row) {
  const Request& request = sequence.request;
  Event event;
  if (request.max_tokens <= 0) return Finish(sequence, std::move(event), FinishReason::kLength);

  int generated = sequence.generated();
  SampleInput input;
  input.logits = row;
  input.prompt = sequence.prompt();
  input.generated = sequence.output();
  if (generated < request.min_tokens) input.banned = sequence.ends;
  input.seed = sequence.seed;
  input.position = static_cast<uint64_t>(generated);
  TokenLogprob token = sampler_.Sample(input, request.sampling);

  sequence.tokens.push_back(token.id);
  ++generated_tokens_;
  if (sequence.Ends(token.id)) {
    event.stop_id = token.id;
    return Finish(sequence, std::move(event), FinishReason::kStop);
  }
  event.ids.push_back(token.id);
  if (request.sampling.logprobs >= 0) event.logprobs.push_back(std::move(token));
  bool full = generated + 1 >= request.max_tokens ||
              static_cast<int64_t>(sequence.tokens.size()) >= plan_.context_length;
  if (full) return Finish(sequence, std::move(event), FinishReason::kLength);
  Emit(sequence, std::move(event));
}

void Worker::Emit(Sequence& sequence, Event event) {
  event.choice = sequence.request.choice;
  event.cached_tokens = sequence.cached_tokens;
  if (sequence.scores_prompt() && event.error.empty() && event.finish != FinishReason::kCancelled) {
    event.prompt_logprobs = std::move(sequence.prompt_logprobs);
    sequence.prompt_sent = true;
  }
  held_events_.emplace_back(sequence.events, std::move(event));
}

void Worker::Finish(Sequence& sequence, Event event, FinishReason reason) {
  ++finished_[static_cast<size_t>(reason)];
  cached_prompt_tokens_ += sequence.cached_tokens;
  event.finish = reason;
  Emit(sequence, std::move(event));
  sequences_.erase(sequence.id);
  scheduler_->Remove(&sequence);
}

void Worker::EndAll(FinishReason reason, const std::string& error) {
  while (Sequence* sequence = scheduler_->oldest()) {
    Event event;
    event.error = error;
    Finish(*sequence, std::move(event), reason);
  }
  cache_->ForgetAll();
}

void Worker::FillStats(EngineStats& stats) const {
  stats.running = scheduler_->running();
  stats.waiting = scheduler_->waiting();
  stats.waiting_tokens = scheduler_->waiting_tokens();
  stats.groups.resize(static_cast<size_t>(cache_->groups()));
  for (int g = 0; g < cache_->groups(); ++g) {
    const BlockPool& pool = cache_->pool(g);
    stats.groups[g] = {plan_.groups[g].blocks - 1,
                       pool.total(),
                       pool.free(),
                       pool.cached(),
                       pool.evictions(),
                       scheduler_->hit_tokens(g),
                       scheduler_->query_tokens()};
  }
  stats.prompt_tokens = prompt_tokens_;
  stats.cached_prompt_tokens = cached_prompt_tokens_;
  stats.generated_tokens = generated_tokens_;
  stats.preemptions = scheduler_->preemptions();
  stats.steps = steps_;
  stats.finished = finished_;
  stats.prefix_query_tokens = scheduler_->query_tokens();
  stats.prefix_hit_tokens = scheduler_->hit_tokens();
  stats.prefix_names = static_cast<int64_t>(cache_->prefixes());
  stats.last_step_unix_seconds = last_step_unix_seconds_;
}

void Worker::Flush() {
  for (auto& [events, event] : held_events_) events->Push(std::move(event));
  held_events_.clear();
}

}  // namespace ashlar
