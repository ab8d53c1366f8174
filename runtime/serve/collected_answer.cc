#include "serve/collected_answer.h"

#include <algorithm>
#include <iterator>

namespace ashlar {

void CollectedAnswer::Add(const Choice& choice, AnswerPiece piece,
                          const std::vector<int32_t>& ids) {
  size_t index = static_cast<size_t>(choice.index);
  if (parts_.size() <= index) parts_.resize(index + 1);
  Part& part = parts_[index];
  part.text += piece.text;
  std::move(piece.logprobs.begin(), piece.logprobs.end(), std::back_inserter(part.logprobs));
  // Those behind a stop string are no part of the answer.
  size_t kept = static_cast<size_t>(choice.assembler.tokens()) - part.ids.size();
  part.ids.insert(part.ids.end(), ids.begin(),
                  ids.begin() + static_cast<ptrdiff_t>(std::min(kept, ids.size())));
}

Json CollectedAnswer::Body(const ResponseHead& head, std::deque<Choice>& choices,
                           const std::vector<std::vector<int32_t>>& prompts, const Usage& usage) {
  parts_.resize(choices.size());
  std::vector<ChoiceResult> results;
  for (Choice& choice : choices) {
    Part& part = parts_[static_cast<size_t>(choice.index)];
    ChoiceResult& result = results.emplace_back();
    std::vector<TokenLogprob> tokens = std::move(part.logprobs);
    if (request_.echo) {
      result.text = EchoText(serving_, request_, choice);
      tokens.insert(tokens.begin(), choice.prompt_logprobs.begin(), choice.prompt_logprobs.end());
    }
    result.text += part.text;
    bool prompt_first = request_.echo && !choice.prompt_logprobs.empty();
    result.logprobs = choice.logprobs.Write(tokens, prompt_first);
    if (request_.show_prompt_logprobs) {
      result.prompt_logprobs = PromptLogprobs(serving_.tokenizer, choice.prompt_logprobs);
    }
    if (request_.return_token_ids) {
      result.prompt_token_ids = prompts[static_cast<size_t>(choice.prompt)];
      result.token_ids = std::move(part.ids);
    }
    result.finish_reason = FinishWord(choice.assembler.reason());
  }
  return WholeAnswer(head, results, usage);
}

}  // namespace ashlar
