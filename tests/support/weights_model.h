// A model of a few hundred weights whose every value tells which tensor, row and column it is.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "model/config.h"
#include "support/gguf_writer.h"
#include "support/safetensors_writer.h"
#include "weights/needs.h"

namespace ashlar::testing_support {

// Two layers of 4 query and 2 KV heads, hidden 8, with everything that a model may have.
inline ModelConfig TinyConfig() {
  ModelConfig config;
  config.architecture = "llama";
  config.hidden = 8;
  config.intermediate = 6;
  config.vocab = 10;
  config.layers.resize(2);
  for (LayerSpec& layer : config.layers) {
    layer.heads = 4;
    layer.kv_heads = 2;
    layer.head_dim = layer.head_dim_v = 4;
  }
  config.ropes.push_back({.inv_freq = {1.0f, 0.5f}});
  return config;
}

// Tensors that the needs ask for, by name; f32 unless a test changes them. Value of row r, column c
// of the n-th need: n * 100 + r + c / 16.
struct TinyTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

inline std::map<std::string, TinyTensor> TinyTensors(const ModelNeeds& needs) {
  std::map<std::string, TinyTensor> tensors;
  int number = 0;
  for (const TensorNeed* need : needs.all()) {
    TinyTensor tensor{need->shape, {}};
    int64_t cols = need->shape.back(), rows = need->shape.size() == 2 ? need->shape[0] : 1;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        tensor.values.push_back(static_cast<float>(100 * number) + static_cast<float>(r) +
                                static_cast<float>(c) / 16);
      }
    }
    tensors[need->name] = std::move(tensor);
    ++number;
  }
  return tensors;
}

inline std::string RawFloats(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

inline std::string TinySafetensors(const std::map<std::string, TinyTensor>& tensors) {
  SafetensorsWriter writer;
  for (const auto& [name, tensor] : tensors)
    writer.Tensor(name, "F32", tensor.shape, RawFloats(tensor.values));
  return writer.Bytes();
}

inline std::string TinyGguf(const std::map<std::string, TinyTensor>& tensors) {
  GgufWriter writer;
  for (const auto& [name, tensor] : tensors) {
    std::vector<uint64_t> shape(tensor.shape.begin(), tensor.shape.end());
    writer.Tensor(name, shape, GgufWriter::kF32, RawFloats(tensor.values));
  }
  return writer.Bytes();
}

}  // namespace ashlar::testing_support
