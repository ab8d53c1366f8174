#include "plan/align.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace ashlar {
namespace {

// Smallest multiple of `step` that is not below `least`.
std::optional<int> Multiple(int64_t least, int64_t step) {
  std::optional<int64_t> tokens = CheckedMul((least - 1) / step + 1, step);
  if (!tokens || *tokens > INT32_MAX) return std::nullopt;
  return static_cast<int>(*tokens);
}

}  // namespace

std::optional<StateBlock> AlignToStates(const StateNeed& need, int tokens) {
  int64_t step = std::max(need.kernel_block, tokens);  // whole steps never shrink the block
  if (need.chunk > 0) step = std::lcm(int64_t{need.chunk}, step);
  int64_t least = (need.state_page - 1) / need.token_page + 1;
  std::optional<int> wanted = Multiple(least, step);
  if (!wanted) return std::nullopt;

  StateBlock block;
  block.tokens = *wanted;
  std::optional<int64_t> page = CheckedMul(int64_t{block.tokens}, need.token_page);
  if (!page) return std::nullopt;
  if (*page > need.state_page) {
    block.padded_page = *page;
    block.padded_percent =
        100.0 * static_cast<double>(*page - need.state_page) / static_cast<double>(need.state_page);
  }
  return block;
}

std::optional<int> AlignToWideType(int tokens, int smallest_kernel_block, int64_t token_bytes,
                                   int64_t wide_token_bytes) {
  std::optional<int64_t> page = CheckedMul(wide_token_bytes, int64_t{smallest_kernel_block});
  if (!page) return std::nullopt;
  std::optional<int> wanted = Multiple((*page - 1) / token_bytes + 1, smallest_kernel_block);
  if (!wanted) return std::nullopt;
  return std::max(tokens, *wanted);
}

}  // namespace ashlar
