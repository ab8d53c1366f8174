// What a row is judged against: the needs of one attention group, and the device that it would run
// on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "probe/platform.h"
#include "spec/spec.h"

namespace ashlar {

struct AttentionRequest {
  KvKind kind = KvKind::kFull;
  int heads = 0, kv_heads = 0;  // of one rank
  int head_dim = 0, head_dim_v = 0;
  int window = 0;
  DType dtype = DType::kF32;  // of q and out
  DType kv_dtype = DType::kBF16;
  int block_tokens = 0;            // only when the spec states one; 0 never refuses a row
  std::optional<KvLayout> layout;  // only when the spec states one
  bool sinks = false, non_causal = false, batch_invariant = false, kv_connector = false;
  bool sparse = false;            // an indexer picks the keys
  bool mm_prefix = false;         // the tokens of an image see each other
  bool head_scales = false;       // the KV cache is quantised with a scale a head
  bool prefix_window = false;     // every key of the prompt, and a window of the generated ones
  bool pcp = false, dcp = false;  // prefill or decode context parallel
  bool adaptive_verification = false;  // query lengths change on the device after planning a step
  bool operator==(const AttentionRequest&) const = default;
};

struct Target {
  DeviceInfo device;
  std::vector<std::string> platforms;  // whose rows may run here, best first
  std::vector<std::string> present;    // platforms with a device on this machine
};

// What one layer asks for on this platform, with K and V in `kv_dtype`.
AttentionRequest RequestFor(const Spec& spec, const std::string& platform, DType weights,
                            const LayerSpec& layer, DType kv_dtype);

}  // namespace ashlar
