#include "serve/choice.h"

namespace ashlar {

std::string EchoText(const Serving& serving, const ApiRequest& request, const Choice& choice) {
  const auto& prompts = std::get<std::vector<Prompt>>(request.input);
  const Prompt& prompt = prompts[static_cast<size_t>(choice.prompt)];
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  Result<std::string> text =
      serving.tokenizer.Decode(std::get<std::vector<int32_t>>(prompt), request.skip_special);
  return text ? *text : "";
}

}  // namespace ashlar
