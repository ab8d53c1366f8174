#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace ashlar {

Scheduler::Scheduler(PrefixCache& cache, const Limits& limits, Pace* pace)
    : cache_(cache),
      limits_(limits),
      pace_(pace),
      group_hit_tokens_(static_cast<size_t>(cache.groups())) {
  Check(limits.sequences > 0 && limits.batch_tokens > 0, "a step has room for a token");
  Check(limits.logit_rows >= limits.sequences, "every sequence of a step may sample");
  // A decode that never comes into the step would starve.
  limits_.sequences = std::min(limits.sequences, limits.batch_tokens);
}

bool Scheduler::CanEverFit(const Sequence& sequence) const {
  // The last sampled token is never computed.
  int64_t most =
      std::min<int64_t>(int64_t{sequence.prompt_tokens} + std::max(sequence.request.max_tokens, 1),
                        limits_.context_tokens + 1);
  int64_t tokens = std::max<int64_t>(most - 1, sequence.prompt_tokens);
  for (int g = 0; g < cache_.groups(); ++g) {
    if (cache_.shape(g).BlocksFor(tokens, 1) > cache_.pool(g).total()) return false;
  }
  return true;
}

bool Scheduler::MayWait() const {
  return waiting_.empty() && !admission_blocked_ && running() < limits_.sequences &&
         std::ranges::all_of(running_, [](const auto& one) { return one->remaining() <= 1; });
}

void Scheduler::Add(std::unique_ptr<Sequence> sequence) {
  Check(waiting_.empty() || waiting_.back()->id < sequence->id, "1: ids grow");
  waiting_tokens_ += static_cast<int64_t>(sequence->tokens.size());
  waiting_.push_back(std::move(sequence));
}

const std::vector<Slice>& Scheduler::Schedule(bool under_way) {
  slices_.clear();
  budget_ = limits_.batch_tokens;
  logits_left_ = limits_.logit_rows;
  // Preemption takes from the end of running_: none of those has a slice yet.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence* sequence = running_[i].get();
    if (sequence->full(limits_.context_tokens) || sequence->remaining() != 1) continue;
    if (CoverDecode(sequence, under_way)) AddSlice(sequence, 1);
  }
  if (waiting_.empty() && slices_.size() == running_.size()) return slices_;  // answers alone
  if (pace_ != nullptr) LimitPrompts();
  bool stalled = false;
  for (const auto& sequence : running_) {
    if (sequence->remaining() > 1) stalled |= !AddSlice(sequence.get(), budget_);
  }
  while (!stalled && budget_ > 0 && Admit()) {
    stalled = !AddSlice(running_.back().get(), budget_);
  }
  // Every runner may be a prefill without a block: the oldest gets those of the youngest, unless
  // the step under way gives some back.
  while (slices_.empty() && !running_.empty() && !under_way) {
    if (AddSlice(running_.front().get(), budget_)) break;
    Check(running_.size() > 1, "3: a sequence that can fit runs when it is alone");
    Preempt();
  }
  return slices_;
}

// Cuts the budget that is left for prompts to what the answers of this step can bear.
void Scheduler::LimitPrompts() {
  int64_t prompts = std::ssize(waiting_);
  const Sequence* first = waiting_.empty() ? nullptr : waiting_.front().get();
  for (size_t i = running_.size(); i-- > 0;) {
    if (running_[i]->remaining() <= 1) continue;
    first = running_[i].get();
    ++prompts;
  }
  if (first == nullptr) return;
  const int decodes = static_cast<int>(slices_.size());
  budget_ = std::min(budget_, pace_->PromptTokens(decodes, static_cast<int>(prompts),
                                                  first->computed, first->remaining()));
}

// Makes room for one more token, from the youngest if need be; false when that is the sequence
// itself, which then starts over, or first sees what the step under way gives back.
bool Scheduler::CoverDecode(Sequence* sequence, bool under_way) {
  auto covered = [&] {
    return std::ranges::all_of(sequence->tables, [&](const BlockTable& table) {
      return table.Reach() > sequence->computed;
    });
  };
  while (!covered()) {
    bool itself = running_.back().get() == sequence;
    if (itself && under_way) return false;
    Check(!itself || running_.size() > 1, "3: a sequence that can fit runs when it is alone");
    Preempt();
    if (itself) return false;
  }
  return true;
}

// The largest slice of at most `most` tokens that blocks and logit rows allow; false for none.
bool Scheduler::AddSlice(Sequence* sequence, int most) {
  int64_t tokens = std::min(most, sequence->remaining());
  for (const BlockTable& table : sequence->tables) {
    tokens = std::min(tokens, table.Reach() - sequence->computed);
  }
  if (sequence->scores_prompt()) tokens = std::min<int64_t>(tokens, logits_left_);
  if (tokens <= 0) return false;

  Slice slice{sequence, static_cast<int>(tokens), 0};
  if (tokens == sequence->remaining()) slice.logits = 1;
  if (sequence->scores_prompt()) slice.logits = slice.tokens;
  if (slice.logits > logits_left_) return false;

  for (BlockTable& table : sequence->tables) {
    Check(table.Cover(sequence->computed + tokens), "a scheduled token has a place in the cache");
  }
  budget_ -= slice.tokens;
  logits_left_ -= slice.logits;
  slices_.push_back(slice);
  return true;
}

void Scheduler::Preempt() {
  std::unique_ptr<Sequence> youngest = std::move(running_.back());
  running_.pop_back();
  GiveBack(*youngest);
  youngest->computed = 0;
  youngest->prompt_logprobs.clear();
  waiting_tokens_ += static_cast<int64_t>(youngest->tokens.size());
  waiting_.push_front(std::move(youngest));
  ++preemptions_;
  admission_blocked_ = true;  // or it would come straight back
}

// Moves the oldest waiting sequence to running, on the prefix that the cache holds, when the whole
// of it has a place now.
bool Scheduler::Admit() {
  if (waiting_.empty() || running() >= limits_.sequences || logits_left_ == 0) return false;
  if (admission_blocked_ && !running_.empty()) return false;
  Sequence& sequence = *waiting_.front();
  Check(sequence.pending == 0, "what is sampled is known before a sequence starts over");
  int64_t tokens = static_cast<int64_t>(sequence.tokens.size());
  if (sequence.path.chains.empty()) sequence.path = cache_.Begin(sequence.request.cache_salt);
  cache_.Extend(sequence.path, sequence.tokens);
  // The last token is computed for its logits; a scored prompt is computed whole.
  PrefixMatch match = cache_.Match(sequence.path, sequence.scores_prompt() ? 0 : tokens - 1);
  int64_t hit = match.tokens;
  sequence.tables = cache_.MakeTables();
  cache_.Adopt(sequence.path, hit, sequence.tables);

  int64_t in_flight = std::min<int64_t>(tokens - hit, limits_.batch_tokens);
  for (int g = 0; g < cache_.groups(); ++g) {
    int64_t needed = std::min(cache_.shape(g).BlocksFor(tokens, in_flight), cache_.pool(g).total());
    int64_t held = std::ranges::count_if(sequence.tables[g].blocks(),
                                         [](BlockId block) { return block != kNullBlock; });
    if (needed - held <= cache_.pool(g).free()) continue;
    for (BlockTable& table : sequence.tables) table.Clear();
    sequence.tables.clear();
    admission_blocked_ = true;
    Check(!running_.empty(), "3: a sequence that can fit is admitted when it is alone");
    return false;
  }
  sequence.computed = static_cast<int>(hit);
  if (sequence.admissions++ == 0) {
    sequence.cached_tokens = sequence.computed;
    query_tokens_ += tokens;
    hit_tokens_ += hit;
    for (size_t g = 0; g < group_hit_tokens_.size(); ++g) group_hit_tokens_[g] += match.by_group[g];
  }
  waiting_tokens_ -= tokens;
  running_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return true;
}

void Scheduler::GiveBack(Sequence& sequence) {
  for (BlockTable& table : sequence.tables) table.Clear();
  sequence.tables.clear();
  cache_.End(sequence.path);
  admission_blocked_ = false;
}

std::unique_ptr<Sequence> Scheduler::Remove(Sequence* sequence) {
  auto is_it = [&](const std::unique_ptr<Sequence>& other) { return other.get() == sequence; };
  std::unique_ptr<Sequence> removed;
  if (auto it = std::ranges::find_if(running_, is_it); it != running_.end()) {
    removed = std::move(*it);
    running_.erase(it);
  } else {
    auto waiting = std::ranges::find_if(waiting_, is_it);
    Check(waiting != waiting_.end(), "a removed sequence is the scheduler's");
    removed = std::move(*waiting);
    waiting_.erase(waiting);
    waiting_tokens_ -= static_cast<int64_t>(removed->tokens.size());
  }
  GiveBack(*removed);
  return removed;
}

std::optional<std::chrono::steady_clock::time_point> Scheduler::oldest_arrival() const {
  auto fresh = std::ranges::find_if(waiting_, [](const auto& one) { return one->admissions == 0; });
  if (fresh == waiting_.end()) return std::nullopt;
  return (*fresh)->arrived;
}

Sequence* Scheduler::oldest() const {
  if (!running_.empty()) return running_.front().get();
  return waiting_.empty() ? nullptr : waiting_.front().get();
}

}  // namespace ashlar
