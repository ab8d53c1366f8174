// Recurrent mixers: the states that they keep and the weights that they have. Formulas: Mamba,
// arXiv 2312.00752; Mamba-2, arXiv 2405.21060; gated delta rule, arXiv 2412.06464. Internal to
// model/.
#pragma once

#include "model/config.h"
#include "model/config_reader.h"

namespace ashlar {

// A layer that keeps `states` and nothing else.
LayerSpec StateLayer(std::vector<StateShape> states);

// What the file says its recurrent state is kept in; unsaid, as the model computes.
DType StateDType(ConfigReader& reader, std::string_view key, const ModelConfig& config);

// The inputs of a causal convolution that the next token needs: [kernel - 1, channels].
StateShape ConvolutionState(const ModelConfig& config, int64_t kernel, int64_t channels);

struct Mamba2 {
  int64_t heads = 0, head_dim = 0, groups = 0, state = 0, kernel = 0;
  DType state_dtype = DType::kBF16;
};
LayerSpec Mamba2Layer(const ModelConfig& config, const Mamba2& mixer);
void CountMamba2(ModelConfig& config, const Mamba2& mixer);

struct Mamba1 {
  int64_t inner = 0, state = 0, kernel = 0, step_rank = 0;
  DType state_dtype = DType::kBF16;
};
LayerSpec Mamba1Layer(const ModelConfig& config, const Mamba1& mixer);
void CountMamba1(ModelConfig& config, const Mamba1& mixer);

}  // namespace ashlar
