#include "catalogue/blocks.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/checked.h"
#include "plan/align.h"

namespace ashlar {
namespace {

// A latent cache of a hybrid model has at least this many tokens a block.
constexpr int kLeastLatentBlock = 128;
// Gated delta kernels of an XPU read blocks of multiples of this.
constexpr int kXpuBlock = 64;

std::vector<int> KernelSizes(const AttentionRow& row) {
  std::vector<int> sizes;
  for (const BlockRule& rule : row.kernel_blocks) sizes.push_back(rule.tokens);
  return sizes;
}

bool AllSupport(const GroupRows& rows, int tokens) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const AttentionRow* row) { return SupportsBlock(*row, tokens); });
}

// Least common multiple of every row's smallest kernel block.
int SmallestCommonBlock(const GroupRows& rows) {
  int common = 1;
  for (const AttentionRow* row : rows) {
    if (int smallest = SmallestKernelBlock(*row); smallest > 0) common = std::lcm(common, smallest);
  }
  return common;
}

// Grows until a block of K and V takes as much as a state; rounds to what every row's kernel reads.
BlockError AlignHybrid(const ReferenceBlockRequest& request, ReferenceBlocks& blocks) {
  StateNeed need;
  need.state_page = request.state_page;
  need.token_page = request.token_bytes;
  need.kernel_block = request.rows.empty() ? 1 : SmallestKernelBlock(*request.rows.front());
  if (need.kernel_block == 0) return BlockError::kNoKernelSizes;
  if (request.latent) need.kernel_block = std::max(need.kernel_block, kLeastLatentBlock);
  if (request.aligned_states) need.chunk = request.checkpoint_tokens;

  // A size that the user states is rounded too.
  blocks.tokens =
      RoundUp(AlignToStates(need, blocks.tokens)->tokens, SmallestCommonBlock(request.rows));
  int64_t page = blocks.tokens * request.token_bytes;
  if (page > request.state_page) blocks.state_page = page;
  if (request.aligned_states) blocks.state_tokens = blocks.tokens;
  if (request.wide_token_bytes > 0 && request.platform != ReferencePlatform::kCpu)
    blocks.wide_page = page;
  return BlockError::kNone;
}

BlockError AlignMixedTypes(const ReferenceBlockRequest& request, ReferenceBlocks& blocks) {
  int smallest = request.rows.empty() ? 0 : SmallestKernelBlock(*request.rows.front());
  if (smallest == 0) return BlockError::kNoKernelSizes;
  blocks.tokens =
      *AlignToWideType(blocks.tokens, smallest, request.token_bytes, request.wide_token_bytes);
  blocks.wide_page = blocks.tokens * request.token_bytes;
  return BlockError::kNone;
}

void RoundForXpu(const ReferenceBlockRequest& request, ReferenceBlocks& blocks) {
  int rounded = RoundUp(blocks.tokens, kXpuBlock);
  if (rounded == blocks.tokens) return;
  blocks.tokens = rounded;
  if (request.state_page > 0) blocks.state_page = rounded * request.token_bytes;
  if (blocks.state_tokens > 0) blocks.state_tokens = rounded;
}

}  // namespace

std::string_view Label(BlockError error) {
  constexpr std::array<std::string_view, 5> kLabels = {"", "no_shared_block", "no_kernel_block",
                                                       "no_kernel_sizes", "rejected_block"};
  return kLabels.at(static_cast<size_t>(error));
}

int PreferredReferenceBlock(const AttentionRow& row, int tokens) {
  if (row.preferred_block > 0) return row.preferred_block;
  return SupportsBlock(row, tokens) ? tokens : SmallestKernelBlock(row);
}

std::optional<int> SharedReferenceBlock(const GroupRows& rows, int default_tokens) {
  if (rows.size() == 1) return PreferredReferenceBlock(*rows.front(), default_tokens);
  if (AllSupport(rows, default_tokens)) return default_tokens;
  std::vector<std::vector<int>> lists;
  for (const AttentionRow* row : rows) lists.push_back(KernelSizes(*row));
  for (int64_t tokens : CommonMultiples(lists)) {
    if (AllSupport(rows, static_cast<int>(tokens))) return static_cast<int>(tokens);
  }
  return std::nullopt;
}

std::optional<ReferencePlatform> ParseReferencePlatform(std::string_view name) {
  if (name == "gpu") return ReferencePlatform::kGpu;
  if (name == "cpu") return ReferencePlatform::kCpu;
  if (name == "xpu") return ReferencePlatform::kXpu;
  return std::nullopt;
}

int DefaultReferenceBlock(ReferencePlatform platform) {
  return platform == ReferencePlatform::kCpu ? 128 : kDefaultBlockTokens;
}

ReferenceBlocks ReferenceBlocksFor(const ReferenceBlockRequest& request) {
  ReferenceBlocks blocks;
  std::optional<int> chosen = request.requested;
  if (request.requested == 0)
    chosen = SharedReferenceBlock(request.rows, DefaultReferenceBlock(request.platform));
  if (!chosen) {
    blocks.error = BlockError::kNoSharedBlock;
    return blocks;
  }
  blocks.tokens = *chosen;
  if (request.state_page > 0) {
    blocks.error = AlignHybrid(request, blocks);
  } else if (request.wide_token_bytes > 0 && request.platform != ReferencePlatform::kCpu) {
    blocks.error = AlignMixedTypes(request, blocks);
  }
  if (blocks.error != BlockError::kNone) return blocks;
  if (request.platform == ReferencePlatform::kXpu && request.gated_delta)
    RoundForXpu(request, blocks);
  if (blocks.tokens == *chosen) return blocks;
  blocks.rejecting = RejectingRows({request.rows}, blocks.tokens);
  if (!blocks.rejecting.empty()) blocks.error = BlockError::kRejectedBlock;
  return blocks;
}

std::optional<int> WorkerKernelBlock(const GroupRows& rows, int tokens, int64_t page_bytes,
                                     int64_t block_stride) {
  return block_stride > page_bytes ? std::optional(tokens) : KernelBlock(rows, tokens);
}

}  // namespace ashlar
