#include "engine/pace.h"

#include <algorithm>

namespace ashlar {
namespace {

constexpr double kWeight = 0.5;      // of the newest step in an average
constexpr double kSlowdown = 1.75;   // of answers beside one prompt
constexpr double kAtOnce = 3.3;      // by one that is over in this step
constexpr double kPerPrompt = 3;     // further prompts: each weighs as so many answers
constexpr double kMostGrowth = 1.5;  // of what is known: more is a pause of the machine
constexpr double kFading = 0.999;    // a step, of what that step does not show
constexpr double kFaded = 0.6;       // what is left of it at least

void Average(double& average, double value) {
  if (average > 0) value = std::min(value, kMostGrowth * average);
  average = average == 0 ? value : average + kWeight * (value - average);
}

}  // namespace

int Pace::SizeOf(int tokens) { return std::min((tokens + kStep - 1) / kStep, kSizes) - 1; }

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
  const int tokens = work.decodes + work.prompt_tokens;
  Size& size = added_[static_cast<size_t>(SizeOf(tokens))];
  if (size.seen == 0) size.seen = Added(tokens);  // a first time is often slow
  Average(size.seen, added);
  for (Size& other : added_) {
    other.thought = std::max(other.thought * kFading, kFaded * other.seen);
  }
  size.thought = size.seen;
}

// Between sizes that were seen, and beyond them, as if tokens cost alike; 0 when none was.
double Pace::Added(int tokens) const {
  const int size = SizeOf(tokens);
  int below = size, above = size;
  const auto seconds = [this](int of) { return added_[static_cast<size_t>(of)].thought; };
  while (below >= 0 && seconds(below) == 0) --below;
  while (above < kSizes && seconds(above) == 0) ++above;
  if (above == kSizes) return below < 0 ? 0 : seconds(below) * (size + 1) / (below + 1);
  if (below < 0) return seconds(above) * (size + 1) / (above + 1);
  if (below == above) return seconds(size);
  return seconds(below) + (seconds(above) - seconds(below)) * (size - below) / (above - below);
}

// The most prompt tokens that fill whole steps of the kernels and add no more than that.
int Pace::Largest(int decodes, double seconds) const {
  int most = kLeast;
  for (int size = 0; size < kSizes; ++size) {
    const int tokens = (size + 1) * kStep - decodes;
    if (tokens > most && Added(decodes + tokens) <= seconds) most = tokens;
  }
  return most;
}

int Pace::PromptTokens(int decodes, int prompts, int64_t context, int64_t left) {
  if (decodes == 0) return 1 << 30;
  if (since_ >= kLook || decodes > decodes_seen_ + decodes_seen_ / 4 + 4) {
    decodes_seen_ = decodes;
    since_ = 0;
    return 0;
  }
  if (decode_seconds_ == 0 || Added(decodes + 1) == 0) return kFirstPromptTokens;
  // In seconds without context.
  const double alone = decode_seconds_ / Cost(context);
  const double slowdown = kSlowdown * (1 + kPerPrompt * std::max(0, prompts - 1) / decodes);
  const int most = Largest(decodes, (slowdown - 1) * alone);
  if (left <= most || left > kSizes * kStep) return most;
  const int all = static_cast<int>(left);
  return Added(decodes + all) <= (kAtOnce - 1) * alone ? all : most;
}

}  // namespace ashlar
