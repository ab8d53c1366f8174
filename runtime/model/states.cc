#include "model/states.h"

#include <fmt/format.h>

namespace ashlar {

LayerSpec StateLayer(std::vector<StateShape> states) {
  LayerSpec layer;
  layer.kind = KvKind::kMamba;
  layer.states = std::move(states);
  return layer;
}

DType StateDType(ConfigReader& reader, std::string_view key, const ModelConfig& config) {
  std::string name = reader.String(key, Info(config.weight_dtype).name);
  for (DType known : {DType::kF32, DType::kBF16, DType::kF16}) {
    if (Info(known).name == name) return known;
  }
  reader.Refuse(key, fmt::format("\"{}\" is not supported", name), "float32, bfloat16 or float16",
                "use the model's original files");
  return DType::kF32;
}

StateShape ConvolutionState(const ModelConfig& config, int64_t kernel, int64_t channels) {
  return {{kernel - 1, channels}, config.weight_dtype};
}

LayerSpec Mamba2Layer(const ModelConfig& config, const Mamba2& mixer) {
  int64_t channels = mixer.heads * mixer.head_dim + 2 * mixer.groups * mixer.state;
  return StateLayer({ConvolutionState(config, mixer.kernel, channels),
                     {{mixer.heads, mixer.head_dim, mixer.state}, mixer.state_dtype}});
}

void CountMamba2(ModelConfig& config, const Mamba2& mixer) {
  auto hidden = static_cast<double>(config.hidden);
  auto inner = static_cast<double>(mixer.heads * mixer.head_dim);
  auto shared = static_cast<double>(2 * mixer.groups * mixer.state);
  config.weights.linear +=
      hidden * (2 * inner + shared + static_cast<double>(mixer.heads)) + inner * hidden;
  config.weights.kept += (inner + shared) * static_cast<double>(mixer.kernel);
}

LayerSpec Mamba1Layer(const ModelConfig& config, const Mamba1& mixer) {
  return StateLayer({ConvolutionState(config, mixer.kernel, mixer.inner),
                     {{mixer.inner, mixer.state}, mixer.state_dtype}});
}

void CountMamba1(ModelConfig& config, const Mamba1& mixer) {
  auto hidden = static_cast<double>(config.hidden), inner = static_cast<double>(mixer.inner);
  auto state = static_cast<double>(mixer.state), rank = static_cast<double>(mixer.step_rank);
  config.weights.linear += 3 * hidden * inner + inner * (rank + 2 * state) + rank * inner;
  config.weights.kept += inner * (state + static_cast<double>(mixer.kernel));
}

}  // namespace ashlar
