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
  int window = 0;         // tokens: the window of the sliding kinds, the chunk of the chunked kind,
                          // what an encoder-only layer sees on either side; 0: everything
  int sink_tokens = 0;    // of the sink kind
  bool sinks = false;     // a learned sink term beside the scores; the kind stays
  bool sparse = false;    // an indexer picks the keys
  int indexer_bytes = 0;  // of a sparse layer: what its indexer caches a token, beside the latent
  std::vector<StateShape> states;  // of the mamba kind: all that is cached
  float scale = 0;                 // of q.k; 1/sqrt(head_dim) for most
  int rope = 0;                    // index into ModelConfig::ropes
};

enum class Activation { kSilu, kGeluTanh };

// Weights by what quantisation does with them; norms and biases, a thousandth of a model, are left
// out. Doubles: exact below 2^53, and no product of sizes from a file overflows.
struct WeightCount {
  double kept = 0;     // embeddings, heads, routers, convolutions: in weight_dtype always
  double linear = 0;   // projections of attention, of mixers and of dense MLPs
  double experts = 0;  // of the experts that a router chooses among
  double total() const { return kept + linear + experts; }
};

// How a quantised checkpoint stores its matrices, scales included.
struct Quantization {
  std::string method;  // quant_method of config.json; "" when weights are stored in weight_dtype
  double linear_bits = 0, expert_bits = 0;  // bits of one weight; 0: weight_dtype
};

struct ModelConfig {
  std::string architecture;  // "llama", "qwen3", "gemma3": the row of the architecture table
  std::string family;        // as the file names it: "LlamaForCausalLM"
  bool has_forward = true;   // of the architecture; see plan_only
  int64_t hidden = 0, intermediate = 0, vocab = 0;
  // In the order in which they run, an encoder's before its decoder's. A model layer with two
  // caches stands here twice: self-attention and then cross-attention in the decoder of an
  // encoder-decoder, attention and then the mixer where both run side by side. A layer without a
  // cache of its own (only an MLP, or a reader of an earlier layer's cache) is left out.
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
  int64_t encoder_length = 0;         // tokens that cross-attention caches at most; 0: no encoder
  DType weight_dtype = DType::kBF16;  // what most weights are stored as
  int32_t bos = -1;
  std::vector<int32_t> eos;
  WeightCount weights;  // of the language model, without towers for other inputs
  Quantization quantization;

  // Neither the architecture without a forward pass nor quantised matrices can be carried out.
  bool plan_only() const { return !has_forward || !quantization.method.empty(); }
  int64_t parameters() const;
  // What the weights take when no file is there to ask.
  int64_t weight_bytes() const;
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
