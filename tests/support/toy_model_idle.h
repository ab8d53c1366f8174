// A model that costs nothing: its logits stay as they are, so that a step is the engine's own work.
#pragma once

#include <vector>

#include "model/forward.h"

namespace ashlar::toy {

class IdleForward : public Forward {
 public:
  IdleForward(int64_t vocab, int logit_rows)
      : vocab_(vocab), logits_(static_cast<size_t>(vocab * logit_rows)) {
    for (size_t i = 0; i < logits_.size(); ++i) logits_[i] = static_cast<float>(i % 977) * 0.01f;
  }
  Result<Tensor> Run(const ModelWeights&, const std::vector<LayerKv>&,
                     const StepInput& step) override {
    return Logits(step);
  }
  Tensor Logits(const StepInput& step) const override {
    return Tensor::Of(const_cast<float*>(logits_.data()), DType::kF32, {step.logit_rows, vocab_});
  }

 private:
  int64_t vocab_;
  std::vector<float> logits_;
};

}  // namespace ashlar::toy
