#include "engine/pace.h"

#include <algorithm>

namespace ashlar {
namespace {

constexpr double kWeight = 0.2;      // of the newest step in an average
constexpr double kSlowdown = 1.8;    // of answers beside one prompt
constexpr double kLastStep = 3.2;    // of one step, when it is the prompt's last
constexpr double kPerPrompt = 4;     // more for each further prompt an answer
constexpr double kMostSlowdown = 8;  // beyond it prompts gain little

void Average(double& average, double value) {
  average = average == 0 ? value : average + kWeight * (value - average);
}

}  // namespace

void Pace::Note(const StepWork& work, double seconds) {
  if (work.prompt_tokens == 0) {
    if (work.decodes > 0) Average(decode_seconds_, seconds);
    return;
  }
  const double base = work.decodes > 0 ? decode_seconds_ : 0;
  // What a step of few tokens costs is not the tokens'.
  const double added = std::max(seconds - base, 0.1 * seconds);
  if (work.prompt_tokens < kLeastPromptTokens) return;
  Average(token_seconds_, added / (work.prompt_tokens * Cost(work.context)));
}

int Pace::PromptTokens(int decodes, int prompts, int64_t context, int64_t left) const {
  constexpr int kMost = 1 << 30;
  if (decodes == 0) return kMost;
  if (decode_seconds_ == 0 || token_seconds_ == 0) return kFirstPromptTokens;
  const double like_answers = decode_seconds_ / (token_seconds_ * Cost(context));
  const bool ends = static_cast<double>(left) <= (kLastStep - 1) * like_answers;
  const double slowdown = std::min(
      kMostSlowdown, (ends ? kLastStep : kSlowdown) +
                         kPerPrompt * std::max(0, prompts - 1) / static_cast<double>(decodes));
  const double tokens = (slowdown - 1) * like_answers;
  return std::clamp(static_cast<int>(std::min<double>(tokens, kMost)), kLeastPromptTokens, kMost);
}

}  // namespace ashlar
