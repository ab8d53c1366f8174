// How vLLM 0.33 comes to its block sizes, where it differs from plan/block_size.h and plan/align.h.
// Rows carry the rules of its backends: kernel blocks, and manager blocks that replace them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/block_size.h"

namespace ashlar {

enum class BlockError {
  kNone,
  kNoSharedBlock,  // no manager block suits every backend
  kNoKernelBlock,  // no kernel block suits every backend of a group
  kNoKernelSizes,  // the first backend of a hybrid model names no kernel block
  kRejectedBlock,  // what the block grew to does not suit `rejecting`
};
std::string_view Label(BlockError error);  // "no_shared_block"

// A row's preferred size holds whether or not it accepts it; else `tokens`, else its smallest
// kernel block.
int PreferredReferenceBlock(const AttentionRow& row, int tokens);

// Of an automatic block size; empty: no size is shared. A preference counts for a single row only.
std::optional<int> SharedReferenceBlock(const GroupRows& rows, int default_tokens);

enum class ReferencePlatform { kGpu, kCpu, kXpu };
std::optional<ReferencePlatform> ParseReferencePlatform(std::string_view name);
int DefaultReferenceBlock(ReferencePlatform platform);

struct ReferenceBlockRequest {
  ReferencePlatform platform = ReferencePlatform::kGpu;
  GroupRows rows;                // of every layer but the recurrent ones, each once
  int requested = 0;             // 0: automatic
  int64_t token_bytes = 0;       // one attention layer's page of one token
  int64_t wide_token_bytes = 0;  // the same of layers that keep the model's type; 0: there are none
  int64_t state_page = 0;        // one recurrent layer's page; 0: not a hybrid model
  bool latent = false;
  bool aligned_states = false;  // a state at the end of each block
  int checkpoint_tokens = 0;    // between states of a prefill; 0: none
  bool gated_delta = false;     // some layer is a gated delta network
};

struct ReferenceBlocks {
  BlockError error = BlockError::kNone;
  std::vector<std::string> rejecting;  // of kRejectedBlock
  int tokens = 0;
  int state_tokens = 0;    // between two states; 0: only one is kept
  int64_t state_page = 0;  // what recurrent pages are padded to; 0: not padded
  int64_t wide_page = 0;   // what pages of layers in the model's type are padded to; 0: not
};
ReferenceBlocks ReferenceBlocksFor(const ReferenceBlockRequest& request);

// At worker set-up: blocks of a layer with something between them are not split, and no row is
// asked.
std::optional<int> WorkerKernelBlock(const GroupRows& rows, int tokens, int64_t page_bytes,
                                     int64_t block_stride);

}  // namespace ashlar
