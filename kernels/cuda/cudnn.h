// cuDNN's attention of prompts over a paged cache, found at run time.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>

#include "ashlar_plugin.h"
#include "gpu/gpu.h"

namespace ashlar::gpu_kernels {

// All that a plan of the library depends on. Strides are in elements.
struct SdpaShape {
  ashlar_dtype type;                    // of q, the cache and out: 16 bits
  int64_t sequences, most_tokens;       // new ones of a sequence
  int64_t q_heads, kv_heads, head_dim;  // of a token
  int64_t table_blocks, block_tokens, cache_blocks;
  int64_t q_token, out_token;                    // from a token to the next
  int64_t cache_block, cache_head, cache_token;  // from an entry's K to the next one's

  auto operator<=>(const SdpaShape&) const = default;
};

// In device memory but for `scale`.
struct SdpaCall {
  const void *q, *k, *v;
  void* out;
  const int32_t* tables;                 // [sequences, table_blocks]
  const int32_t *tokens, *contexts;      // [sequences]: new ones, and with those before them
  const int32_t *q_begins, *out_begins;  // [sequences + 1]: elements before a sequence's
  float scale;
  void* workspace;
};

class Sdpa {
 public:
  virtual ~Sdpa() = default;
  // Whether it is known already what WorkspaceBytes says, which makes a plan: that may allocate.
  virtual bool Knows(const SdpaShape& shape) const = 0;
  // Bytes that a call of this shape needs; -1 when there is no plan for it.
  virtual int64_t WorkspaceBytes(const SdpaShape& shape) = 0;
  // "" when done; otherwise why not, and nothing was launched. Each token sees the keys up to its
  // own: the last of a sequence sees `contexts` of them.
  virtual std::string Run(gpu::Stream stream, const SdpaShape& shape, const SdpaCall& call) = 0;
};
// Empty when there is no such library here.
std::unique_ptr<Sdpa> OpenSdpa();

}  // namespace ashlar::gpu_kernels
