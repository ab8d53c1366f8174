// How much prompt may go into a step beside running answers, so that these keep their pace: by
// predicted time, learned from the steps that ran. Pure: times are handed in.
#pragma once

#include <array>
#include <cstdint>

namespace ashlar {

// What one step ran.
struct StepWork {
  int decodes = 0;        // answers that got a token
  int prompt_tokens = 0;  // of all prompts
  int64_t context = 0;    // tokens that stood before the prompt's, of the longest
};

// Steps may be asked for before the one before has been noted.
class Pace {
 public:
  // `half_context`: the context at which attention over it costs a prompt token as much as the
  // model's products do.
  explicit Pace(double half_context = 1e9) : half_context_(half_context) {}

  void Note(const StepWork& work, double seconds);

  // How long the next step may still wait to be put together while such a step has run for `ran`
  // seconds, so that the device need not wait; 0 where that is not known.
  double Spare(const StepWork& work, double ran) const;
  // After a step: whether the device still ran it when the next one had been started. A step that
  // did not wait may not have been late by waiting: of such only those in time are noted.
  void NoteSpare(bool in_time);

  // The most prompt tokens for a step beside `decodes` answers while `prompts` prompts wait, the
  // first of them at `context` with `left` tokens to go. Beside one prompt answers are to keep more
  // than half their pace, but in its last step; the more others wait for each answer, the more
  // answers give way. Now and then 0: what answers take alone is to be seen again.
  int PromptTokens(int decodes, int prompts, int64_t context, int64_t left);

  static constexpr int kStep = 32;                // prompt tokens: kernels work in as many
  static constexpr int kFirstPromptTokens = 512;  // before anything is known
  static constexpr int kLook = 48;                // steps with prompts between looks at answers

 private:
  static constexpr int kSizes = 66;  // of prompts' parts, in kStep; the last is of all larger ones

  double Cost(int64_t context) const { return 1 + static_cast<double>(context) / half_context_; }
  static int SizeOf(int prompt_tokens);
  double Added(int prompt_tokens) const;
  double AddedAtLeast(int prompt_tokens) const;
  int Largest(double seconds) const;

  double half_context_;
  double decode_seconds_ = 0;  // of a step of answers alone; 0: none seen
  // What so many tokens of prompts without context add to it; 0: none seen.
  struct Size {
    double seen = 0;  // on average
    // Less where that was long ago, down to a share, so that it is tried again; within bounds that
    // smaller sizes seen since set.
    double thought = 0;
  };
  std::array<Size, kSizes> added_{};
  int decodes_seen_ = 0;  // answers in the last step of answers alone, or the last asked for
  int since_ = kLook;     // steps with prompts after it
  double sure_ = 0.5;     // the share of what a step is expected to take that the next one waits
};

}  // namespace ashlar
