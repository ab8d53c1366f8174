#include "engine/pace.h"

#include <algorithm>

namespace ashlar {
namespace {

constexpr double kWeight = 0.5;          // of the newest step in an average
constexpr double kSlowdown = 1.7;        // of answers beside one prompt
constexpr double kAtOnce = 2.4;          // by one that is over in this step
constexpr double kPerPrompt = 3;         // further prompts: each weighs as so many answers
constexpr double kMostGrowth = 1.5;      // over what is known: more is a pause of the machine
constexpr double kFading = 0.999;        // a step, of what that step does not show
constexpr double kFaded = 0.6;           // what is left of it at least
constexpr double kMostSure = 0.9;        // of what a step is expected to take
constexpr double kSurer = 0.05;          // by each step that did not wait too long
constexpr double kHostSeconds = 0.5e-3;  // from a step's start until the device has work of it
constexpr double kLeastSpare = 0.1e-3;   // less is not worth a sleep

void Average(double& average, double value) {
  if (average > 0) value = std::min(value, kMostGrowth * average);
  average = average == 0 ? value : average + kWeight * (value - average);
}

}  // namespace

int Pace::SizeOf(int prompt_tokens) {
  return std::min((prompt_tokens + kStep - 1) / kStep, kSizes) - 1;
}

void Pace::Note(const StepWork& work, double seconds) {
  if (work.decodes == 0) return;
  if (work.prompt_tokens == 0) {
    Average(decode_seconds_, seconds);
    decodes_seen_ = work.decodes;
    since_ = 0;
    return;
  }
  ++since_;
  const double added = std::max(seconds - decode_seconds_, 0.1 * seconds) / Cost(work.context);
  const int size = SizeOf(work.prompt_tokens);
  Size& now = added_[static_cast<size_t>(size)];
  if (now.seen == 0) now.seen = Added(work.prompt_tokens);  // a first time is often slow
  Average(now.seen, added);
  now.thought = now.seen;
  for (int i = 0; i < kSizes; ++i) {
    Size& other = added_[static_cast<size_t>(i)];
    if (i == size || other.seen == 0) continue;
    other.thought = std::max(other.thought * kFading, kFaded * other.seen);
    if (i < size) continue;
    // More tokens do not cost less, nor much more a token.
    const double alike = now.seen * (i + 1) / (size + 1);
    other.thought = std::clamp(other.thought, now.seen, kMostGrowth * alike);
  }
}

double Pace::Spare(const StepWork& work, double ran) const {
  if (work.decodes == 0 || decode_seconds_ == 0) return 0;
  // Fewer answers may take less.
  const double fewer = std::min(1.0, static_cast<double>(work.decodes) / decodes_seen_);
  const double added = work.prompt_tokens == 0 ? 0 : AddedAtLeast(work.prompt_tokens);
  const double expected = decode_seconds_ * fewer + added * Cost(work.context);
  const double spare = sure_ * expected - kHostSeconds - ran;
  return spare < kLeastSpare ? 0 : spare;
}

// A host that is slow to start a step, or steps that become shorter, are not known but by this.
void Pace::NoteSpare(bool in_time) {
  sure_ = in_time ? std::min(sure_ + kSurer, kMostSure) : sure_ / 2;
}

// Between sizes that were seen, and beyond them, as if tokens cost alike; 0 when none was.
double Pace::Added(int prompt_tokens) const {
  const int size = SizeOf(prompt_tokens);
  int below = size, above = size;
  const auto seconds = [this](int of) { return added_[static_cast<size_t>(of)].thought; };
  while (below >= 0 && seconds(below) == 0) --below;
  while (above < kSizes && seconds(above) == 0) ++above;
  if (above == kSizes) return below < 0 ? 0 : seconds(below) * (size + 1) / (below + 1);
  if (below < 0) return seconds(above) * (size + 1) / (above + 1);
  if (below == above) return seconds(size);
  return seconds(below) + (seconds(above) - seconds(below)) * (size - below) / (above - below);
}

// What the largest size seen adds that is no larger; 0 when none was.
double Pace::AddedAtLeast(int prompt_tokens) const {
  for (int size = SizeOf(prompt_tokens); size >= 0; --size) {
    const double seconds = added_[static_cast<size_t>(size)].thought;
    if (seconds > 0) return seconds;
  }
  return 0;
}

// The most tokens that add no more than that, or the fewest of all.
int Pace::Largest(double seconds) const {
  int size = kSizes;
  while (size > 1 && Added(size * kStep) > seconds) --size;
  return size * kStep;
}

int Pace::PromptTokens(int decodes, int prompts, int64_t context, int64_t left) {
  if (decodes == 0) return 1 << 30;
  if (since_ >= kLook || decodes > decodes_seen_ + decodes_seen_ / 4 + 4) {
    decodes_seen_ = decodes;
    since_ = 0;
    return 0;
  }
  if (decode_seconds_ == 0 || Added(1) == 0) return kFirstPromptTokens;
  // In seconds without context.
  const double alone = decode_seconds_ / Cost(context);
  const double slowdown = kSlowdown * (1 + kPerPrompt * std::max(0, prompts - 1) / decodes);
  const int most = Largest((slowdown - 1) * alone);
  if (left <= most || left > kSizes * kStep) return most;
  const int all = static_cast<int>(left);
  return Added(all) <= (kAtOnce - 1) * alone ? all : most;
}

}  // namespace ashlar
