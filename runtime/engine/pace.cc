#include "engine/pace.h"

#include <algorithm>

namespace ashlar {
namespace {

constexpr double kWeight = 0.2;      // of the newest step in an average
constexpr double kSlowdown = 1.75;   // of answers beside one long prompt
constexpr double kShortly = 2.4;     // beside one that is over in a few steps
constexpr double kFewSteps = 4;      // of answers alone: a prompt that takes no longer is short
constexpr double kPerPrompt = 4;     // more, by the square of further prompts an answer
constexpr double kMostSlowdown = 8;  // beyond it prompts gain little
constexpr double kMostGrowth = 2;    // of a look: more is a pause of the machine or a first time

void Average(double& average, double value, double weight) {
  average = average == 0 ? value : average + weight * (value - average);
}

}  // namespace

void Pace::Note(const StepWork& work, double seconds) {
  if (work.prompt_tokens == 0) {
    if (work.decodes == 0) return;
    const double most = decode_seconds_ == 0 ? seconds : kMostGrowth * decode_seconds_;
    // A look after a while says more than what was known.
    Average(decode_seconds_, std::min(seconds, most), since_ > 0 ? 0.5 : kWeight);
    decodes_seen_ = work.decodes;
    since_ = 0;
    looking_ = false;
    return;
  }
  ++since_;
  // What a step of few tokens costs is not the tokens'; a step without answers costs more a token.
  const bool tells = work.prompt_tokens >= std::max(kStep, granted_ / 2) && work.decodes > 0;
  if (!tells && token_seconds_ != 0) return;
  const double base = work.decodes > 0 ? decode_seconds_ : 0;
  const double added = std::max(seconds - base, 0.1 * seconds);
  Average(token_seconds_, added / (work.prompt_tokens * Cost(work.context)), kWeight);
}

bool Pace::Looks(int decodes) const {
  if (looking_) return false;
  return decode_seconds_ == 0 || since_ >= kLook || decodes > decodes_seen_ + decodes_seen_ / 4 + 4;
}

int Pace::PromptTokens(int decodes, int prompts, int64_t context, int64_t left) {
  constexpr int kMost = 1 << 30;
  if (decodes == 0) return kMost;
  if (Looks(decodes)) {
    looking_ = true;
    return 0;
  }
  if (decode_seconds_ == 0 || token_seconds_ == 0) return granted_ = kFirstPromptTokens;
  const double like_answers = decode_seconds_ / (token_seconds_ * Cost(context));
  const double others = std::max(0, prompts - 1) / static_cast<double>(decodes);
  const double alone = static_cast<double>(left) <= kFewSteps * like_answers ? kShortly : kSlowdown;
  const double slowdown = std::min(kMostSlowdown, alone + kPerPrompt * others * others);
  const double tokens = std::min<double>((slowdown - 1) * like_answers, kMost);
  // Whole steps of the kernels, unless the prompt ends.
  const int whole = std::max(static_cast<int>(tokens) / kStep * kStep, kStep);
  return granted_ =
             prompts == 1 && tokens >= static_cast<double>(left) ? static_cast<int>(left) : whole;
}

}  // namespace ashlar
