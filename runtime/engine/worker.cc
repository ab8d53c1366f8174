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

// Context at which attention costs a token as much as the products do: 2 flops a weight against
// 4 * heads * head_dim a layer and token of context.
double HalfContext(const ModelConfig& model) {
  double attention = 0;
  for (const LayerSpec& layer : model.layers) {
    if (layer.window == 0) attention += 4.0 * layer.heads * layer.head_dim;
  }
  const double products = 2.0 * static_cast<double>(model.parameters());
  return attention > 0 && products > 0 ? products / attention : 1e9;
}

}  // namespace

Worker::Worker(const Plan& plan, const Device& device, std::unique_ptr<KvArena> arena,
               const Engine::Options& options)
    : plan_(plan),
      device_(device),
      options_(options),
      arena_(std::move(arena)),
      pace_(HalfContext(plan.model)) {}

Result<std::unique_ptr<Worker>> Worker::Create(const Plan& plan, const Device& device,
                                               ModelWeights weights, std::unique_ptr<KvArena> arena,
                                               const Engine::Options& options,
                                               Engine::Parts parts) {
  std::unique_ptr<Worker> worker(new Worker(plan, device, std::move(arena), options));
  worker->cache_ = std::make_unique<PrefixCache>(
      Shapes(worker->arena_->groups()),
      PrefixCache::Options{options.prefix_cache, options.seed, std::move(parts.prefix_hash)});
  worker->scheduler_ = std::make_unique<Scheduler>(
      *worker->cache_,
      Scheduler::Limits{options.max_sequences, options.batch_tokens, Engine::LogitRows(options),
                        plan.context_length},
      &worker->pace_);
  auto runner = StepRunner::Create(plan, device, std::move(weights), *worker->arena_,
                                   *worker->cache_, options, std::move(parts.forward));
  if (!runner.ok()) return runner.problems();
  worker->runner_ = std::move(*runner);
  return worker;
}

Status Worker::Rehearse() {
  if (auto warmed = runner_->Warm(); !warmed.ok()) return warmed;
  auto sequence = std::make_unique<Sequence>();
  sequence->tokens = {std::max(plan_.model.bos, 0)};
  sequence->prompt_tokens = 1;
  sequence->request.max_tokens = 1;
  sequence->events = std::make_shared<EventQueue>();
  sequence->admissions = 1;  // not counted as a look-up
  Accept(std::move(sequence));
  while (!idle()) {
    if (auto step = Step(); !step.ok()) return step;
  }
  std::string error = std::move(std::get<Event>(held_events_.back().second).error);
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
  End(*found->second, {}, FinishReason::kCancelled);
}

Status Worker::Step() {
  if (idle()) return warm() ? Status(Done{}) : runner_->WarmNext();
  const std::vector<Slice>& slices = scheduler_->Schedule(!under_way_.empty());
  if (!slices.empty()) {
    if (auto started = Start(slices); !started.ok()) return started;
  }
  // One step runs ahead of what the host knows, unless the host samples in it.
  const size_t ahead = !slices.empty() && under_way_.back().ahead ? 1 : 0;
  while (under_way_.size() > ahead) {
    if (auto finished = Finish(); !finished.ok()) return finished;
  }
  return Done{};
}

// Puts the step on the stream and notes in the sequences what it will have done.
Status Worker::Start(std::span<const Slice> slices) {
  Started step;
  step.begun = std::chrono::steady_clock::now();
  step.firsts = runner_->firsts();
  step.parts = std::move(spare_parts_);
  step.parts.clear();
  bool on_device = false, on_host = false;
  int row = 0;
  for (const Slice& slice : slices) {
    const Sequence& sequence = *slice.sequence;
    Part part{slice.sequence,
              sequence.admissions,
              sequence.computed + slice.tokens,
              row,
              slice.logits,
              -1};
    const bool samples = slice.logits > 0 && slice.tokens == sequence.remaining();
    if (samples && device_.has_sample() && sequence.plain()) {
      part.token = static_cast<int>(sequence.tokens.size());
      on_device = true;
    } else {
      on_host |= slice.logits > 0;
    }
    row += slice.logits;
    if (slice.tokens == 1) {
      ++step.work.decodes;
    } else {
      step.work.prompt_tokens += slice.tokens;
      step.work.context = std::max<int64_t>(step.work.context, sequence.computed);
    }
    step.parts.push_back(part);
  }
  auto started = runner_->Start(slices, on_device);
  if (!started.ok()) return started.problems();
  step.turn = started->turn;
  step.ahead = !on_host;
  if (on_host) {
    if (!under_way_.empty()) {
      if (auto done = Await(under_way_.front(), false); !done.ok()) return done;
    }
    auto host = runner_->HostLogits(started->logits);
    if (!host.ok()) return host.problems();
    step.logits = *host;
  }
  if (!device_.has_marks()) NotePace(step);  // it has run by now
  for (size_t i = 0; i < slices.size(); ++i) {
    Sequence& sequence = *slices[i].sequence;
    sequence.computed = step.parts[i].computed;
    if (step.parts[i].token < 0) continue;
    sequence.tokens.push_back(-1 - step.parts[i].first_row);
    ++sequence.pending;
  }
  under_way_.push_back(std::move(step));
  return Done{};
}

// Takes in the oldest step under way.
Status Worker::Finish() {
  Started step = std::move(under_way_.front());
  under_way_.pop_front();
  // A step that goes to the device op by op, or that the host waits for, runs before Start is over.
  const bool shows = !under_way_.empty() && under_way_.front().work.prompt_tokens == 0 &&
                     under_way_.front().logits.empty();
  if (auto done = Await(step, shows); !done.ok()) return done;
  for (const Part& part : step.parts) {
    if (part.sequence != nullptr) Advance(step, part);
  }
  spare_parts_ = std::move(step.parts);
  ++steps_;
  last_step_unix_seconds_ = UnixSeconds();
  return Done{};
}

// The device runs one step after the other: a step's time counts from the end of the one before,
// unless an idle step ran between.
void Worker::NotePace(const Started& step) {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> ran = now - std::max(step.begun, last_end_);
  last_end_ = now;
  if (step.firsts == runner_->firsts()) pace_.Note(step.work, ran.count());
}

// Until the device has run the step. One that had ended before, while the next waited, has taken
// nobody knows how long. `shows`: that it had ended tells that the next was started late.
Status Worker::Await(Started& step, bool shows) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kAtOnce = std::chrono::microseconds(50);
  if (step.awaited) return Done{};
  step.awaited = true;
  const Clock::time_point asked = Clock::now();
  if (auto done = runner_->Wait(step.turn); !done.ok()) return done;
  if (!device_.has_marks()) return Done{};
  const bool waited = std::exchange(waited_, false);
  const bool in_time = Clock::now() - asked > kAtOnce;
  if (shows && step.firsts == runner_->firsts() && (waited || in_time)) pace_.NoteSpare(in_time);
  if (in_time || !waited) NotePace(step);
  return Done{};
}

std::chrono::duration<double> Worker::Spare() {
  if (under_way_.empty() || !device_.has_marks() || !scheduler_->MayWait()) return {};
  const Started& step = under_way_.back();
  const std::chrono::duration<double> ran =
      std::chrono::steady_clock::now() - std::max(step.begun, last_end_);
  const double spare = pace_.Spare(step.work, ran.count());
  waited_ |= spare > 0;
  return std::chrono::duration<double>(spare);
}

void Worker::Advance(const Started& step, const Part& part) {
  Sequence& sequence = *part.sequence;
  const bool on_device = part.token >= 0;
  const size_t vocab = static_cast<size_t>(plan_.model.vocab);
  const int32_t id = on_device ? runner_->ids(step.turn)[static_cast<size_t>(part.first_row)] : 0;
  std::span<float> rows;
  if (!on_device && part.rows > 0) {
    rows = step.logits.subspan(static_cast<size_t>(part.first_row) * vocab,
                               static_cast<size_t>(part.rows) * vocab);
  }
  const bool here = part.admissions == sequence.admissions && !sequence.tables.empty();
  if (id < 0 || (!rows.empty() && !AllFinite(rows))) {
    // What led here is doubtful, from the first token on: nobody else may build on it.
    if (here) cache_->Forget(sequence.path);
    Event event;
    event.error = "the model produced a value that is not a finite number";
    return End(sequence, std::move(event), FinishReason::kError);
  }
  if (here) {
    cache_->Extend(sequence.path,
                   std::span(sequence.tokens).first(static_cast<size_t>(part.computed)));
    cache_->Publish(sequence.path, part.computed, sequence.tables);
    for (BlockTable& table : sequence.tables) table.FreeBehind(part.computed);
  }
  if (on_device) {
    --sequence.pending;
    return Take(sequence, part.token, {id, 0, {}});
  }
  if (part.rows == 0) return;
  if (sequence.scores_prompt()) ScorePrompt(sequence, part, rows);
  if (sequence.remaining() == 0) Sample(sequence, rows.last(vocab));
}

// The row of position i scores the prompt's token i + 1.
void Worker::ScorePrompt(Sequence& sequence, const Part& part, std::span<float> rows) {
  size_t vocab = static_cast<size_t>(plan_.model.vocab);
  int first = part.computed - part.rows;
  if (sequence.prompt_logprobs.empty()) {
    sequence.prompt_logprobs.emplace_back().id = sequence.tokens.front();  // nothing predicts it
  }
  for (int row = 0; row < part.rows; ++row) {
    int scored = first + row + 1;
    if (scored >= sequence.prompt_tokens) break;
    sequence.prompt_logprobs.push_back(
        sampler_.Score(rows.subspan(static_cast<size_t>(row) * vocab, vocab),
                       sequence.tokens[scored], sequence.request.sampling.prompt_logprobs));
  }
}

void Worker::Sample(Sequence& sequence, std::span<float> row) {
  const Request& request = sequence.request;
  if (request.max_tokens <= 0) return End(sequence, {}, FinishReason::kLength);
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
  Take(sequence, static_cast<int>(sequence.tokens.size()) - 1, std::move(token));
}

// tokens[index] is known.
void Worker::Take(Sequence& sequence, int index, TokenLogprob token) {
  const Request& request = sequence.request;
  sequence.tokens[static_cast<size_t>(index)] = token.id;
  ++generated_tokens_;
  const bool ends = sequence.Ends(token.id);
  const bool full =
      index + 1 - sequence.prompt_tokens >= request.max_tokens || index + 1 >= plan_.context_length;
  if (!ends && !full && sequence.plain()) {
    held_events_.emplace_back(sequence.events,
                              TokenEvent{request.choice, token.id, sequence.cached_tokens});
    return;
  }
  Event event;
  if (ends) {
    event.stop_id = token.id;
    return End(sequence, std::move(event), FinishReason::kStop);
  }
  event.ids.push_back(token.id);
  if (request.sampling.logprobs >= 0) event.logprobs.push_back(std::move(token));
  if (full) return End(sequence, std::move(event), FinishReason::kLength);
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

void Worker::End(Sequence& sequence, Event event, FinishReason reason) {
  ++finished_[static_cast<size_t>(reason)];
  cached_prompt_tokens_ += sequence.cached_tokens;
  event.finish = reason;
  Emit(sequence, std::move(event));
  sequences_.erase(sequence.id);
  for (Started& step : under_way_) {
    for (Part& part : step.parts) {
      if (part.sequence == &sequence) part.sequence = nullptr;
    }
  }
  scheduler_->Remove(&sequence);
}

void Worker::EndAll(FinishReason reason, const std::string& error) {
  while (Sequence* sequence = scheduler_->oldest()) {
    Event event;
    event.error = error;
    End(*sequence, std::move(event), reason);
  }
  under_way_.clear();
  waited_ = false;
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
  stats.warm = warm();
}

void Worker::Flush() {
  for (auto& held : held_events_) {
    std::visit([&](auto& one) { held.first->Push(std::move(one)); }, held.second);
  }
  held_events_.clear();
}

}  // namespace ashlar
