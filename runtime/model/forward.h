// A forward pass over device tensors. The engine fills StepInput, kv fills LayerKv, weights fills
// ModelWeights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "model/config.h"

namespace ashlar {

// Device memory of one layer's cache and the row that reads it.
struct LayerKv {
  ashlar_kv_view view{};
  int group = 0;  // KV group: which block table and slots
  int row = 0;    // index in the plugin's row table
};

// Per KV group, for one step. Device-readable arrays.
struct GroupStep {
  const int64_t* slots = nullptr;        // [tokens]
  const int32_t* block_table = nullptr;  // [sequences, table_stride] kernel block ids
  int64_t table_stride = 0;
};

struct StepInput {
  int tokens = 0;  // of all sequences, concatenated
  int sequences = 0;
  int max_query = 0, max_context = 0;
  const int32_t* ids = nullptr;          // [tokens]
  const int32_t* positions = nullptr;    // [tokens]
  const int32_t* query_start = nullptr;  // [sequences + 1]
  // [sequences] tokens in the cache after this step; 0: idle, attention leaves it out (graphs only)
  const int32_t* context = nullptr;
  std::vector<GroupStep> groups;
  int logit_rows = 0;                     // tokens whose logits are wanted; all, or picked by
  const int32_t* logit_tokens = nullptr;  // [logit_rows] index into the step's tokens
};

// One decoder layer's weights; which are filled depends on the ModelConfig.
struct LayerWeights {
  Weight qkv, output, gate_up, down;
  Tensor attention_norm, mlp_norm;            // f32 [hidden]
  Tensor post_attention_norm, post_mlp_norm;  // sandwich norms
  Tensor q_norm, k_norm;                      // f32 [head_dim]
  Tensor qkv_bias, output_bias;               // f32
};

struct ModelWeights {
  Weight embedding;  // [vocab, hidden]; also the head when tied
  Weight head;       // empty when tied
  Tensor final_norm;
  std::vector<LayerWeights> layers;
  std::vector<const float*> inv_freq;  // per ModelConfig::ropes, device-readable
  std::vector<Buffer> buffers;         // own what the tensors above point to
};

// Name in the checkpoint of each weight, by the architecture's own naming; {layer} is replaced.
struct WeightNames {
  std::string embedding, head, final_norm;
  std::string q, k, v, o, gate, up,
      down;  // matrices; a bias is the same name with .bias for .weight
  std::string attention_norm, mlp_norm, post_attention_norm, post_mlp_norm, q_norm, k_norm;
  std::vector<std::string> ignored;  // endings of tensor names that hold nothing we need
};
// For a checkpoint of this format and architecture.
WeightNames NamesFor(const ModelConfig& config, Checkpoint::Format format);

// Activations for up to `max_tokens` tokens and `max_logit_rows` rows of logits; reused by each
// step.
class Forward {
 public:
  static Result<std::unique_ptr<Forward>> Create(const ModelConfig& config, const Device& device,
                                                 int max_tokens, int max_logit_rows);
  virtual ~Forward() = default;

  // Runs the model over the step and returns the logits, f32 [logit_rows, vocab] in device memory,
  // valid until the next call.
  virtual Result<Tensor> Run(const ModelWeights& weights, const std::vector<LayerKv>& kv,
                             const StepInput& step) = 0;
  // Where a run of that step leaves its logits.
  virtual Tensor Logits(const StepInput& step) const = 0;
};

// Bytes of activations with a plugin of this type of activations, those that it keeps for itself
// within an op included; a term of the plan's workspace.
int64_t ForwardWorkspaceBytes(const ModelConfig& config, DType activations, int max_tokens,
                              int max_logit_rows);

}  // namespace ashlar
