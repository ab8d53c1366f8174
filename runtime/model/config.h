// What a model is, as data: one LayerSpec a layer, read from config.json or GGUF metadata by the
// architecture's own file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "device/row.h"

namespace ashlar {

struct Rope {
  std::vector<float> inv_freq;  // [rotary_dim / 2], scaling applied; empty: no rotation
  float scale = 1;              // multiplies cos and sin (yarn's attention factor)
  bool interleaved = false;     // pairs (2i, 2i+1), as GGUF stores the Llama family
};

// A fixed state of a mamba-like layer.
struct StateShape {
  std::vector<int64_t> shape;
  DType dtype = DType::kF32;
  bool operator==(const StateShape&) const = default;
};

struct LayerSpec {
  KvKind kind = KvKind::kFull;
  int heads = 0, kv_heads = 0;
  int head_dim = 0, head_dim_v = 0;  // MLA: of the latent with its rotary part, and 0
  int window = 0;       // tokens: the window of the sliding kinds, the chunk of the chunked kind
  int sink_tokens = 0;  // of the sink kind
  bool sinks = false;   // a learned sink term beside the scores; the kind stays
  bool sparse = false;  // an indexer picks the keys
  std::vector<StateShape> states;  // of the mamba kind: all that is cached
  float scale = 0;                 // of q.k; 1/sqrt(head_dim) for most
  int rope = 0;                    // index into ModelConfig::ropes
};

enum class Activation { kSilu, kGeluTanh };

struct ModelConfig {
  std::string architecture;  // "llama", "qwen3", "gemma3": the row of the architecture table
  std::string family;        // as the file names it: "LlamaForCausalLM"
  bool has_forward = true;   // false: plan only
  int64_t hidden = 0, intermediate = 0, vocab = 0;
  std::vector<LayerSpec> layers;
  std::vector<Rope> ropes;
  float norm_eps = 1e-6f;
  bool unit_offset_norms = false;  // norm weights are stored as w - 1
  bool tied_head = false;
  bool qkv_bias = false, output_bias = false;
  bool qk_norm = false;
  bool sandwich_norms = false;  // norms after attention and after the MLP
  Activation activation = Activation::kSilu;
  float embedding_scale = 1;
  int64_t context_length = 0;         // the model's own, tokens
  DType weight_dtype = DType::kBF16;  // what most weights are stored as
  int32_t bos = -1;
  std::vector<int32_t> eos;

  int64_t parameters() const;
};

// Finds the architecture's row by config.json `model_type` or GGUF `general.architecture`. An
// unknown one, an unknown rope type or a missing field is refused by name with what is supported.
// `origin` opens messages (the source field's place).
Result<ModelConfig> ReadModelConfig(const Checkpoint& checkpoint);
// The same from inline geometry (`source.config`).
Result<ModelConfig> ReadModelConfig(const Json& config, const std::string& place);

// Names in the architecture table, in order; those with a forward pass first.
std::vector<std::string> SupportedArchitectures();

}  // namespace ashlar
