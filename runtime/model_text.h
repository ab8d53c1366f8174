// The tokenizer and chat template that a checkpoint carries, made ready.
#pragma once

#include <memory>

#include "checkpoint/checkpoint.h"
#include "text/text.h"

namespace ashlar {

struct ModelText {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  // null when the checkpoint has none
};

// A checkpoint without a tokenizer is refused: there would be nothing to serve.
Result<ModelText> LoadModelText(const Checkpoint& checkpoint);

}  // namespace ashlar
