// How much prompt may go into a step beside running answers, so that these keep their pace: by
// predicted time, learned from the steps that ran. Pure: times are handed in.
#pragma once

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

  // The most prompt tokens for a step beside `decodes` answers while `prompts` prompts wait, the
  // first of them at `context` with `left` tokens to go. Beside a long prompt answers keep more
  // than half their pace, beside a short one somewhat less; and the more prompts wait for each
  // answer, the more answers give way. Now and then 0: what answers take alone is to be seen again.
  int PromptTokens(int decodes, int prompts, int64_t context, int64_t left);

  static constexpr int kStep = 64;                // tokens; fewer read the weights in vain
  static constexpr int kFirstPromptTokens = 512;  // before anything is known
  static constexpr int kLook = 48;                // steps with prompts between looks at answers

 private:
  double Cost(int64_t context) const { return 1 + static_cast<double>(context) / half_context_; }
  bool Looks(int decodes) const;

  double half_context_;
  double decode_seconds_ = 0;  // of a step of answers alone; 0: none seen
  double token_seconds_ = 0;   // that a prompt token without context adds to it; 0: none seen
  int decodes_seen_ = 0;       // answers in the last step of answers alone
  int since_ = 0;              // steps with prompts after it
  bool looking_ = false;       // a step of answers alone has been asked for
  int granted_ = 0;            // prompt tokens of the last step asked for
};

}  // namespace ashlar
