// How far a block grows so that every page of the pool that may stand in its place fits: a state of
// a recurrent layer, or a page of layers whose K and V are kept in a wider type.
#pragma once

#include <cstdint>
#include <optional>

namespace ashlar {

// A model with recurrent layers keeps one state a block; the block grows until its K and V take as
// much, and the state's page is padded to them.
struct StateNeed {
  int64_t state_page = 0;  // bytes of one recurrent layer's states
  int64_t token_page = 0;  // bytes of one attention layer's page of one token
  int kernel_block = 0;    // smallest kernel block of the first attention row; 0: none
  int chunk = 0;           // tokens between states, when one is kept of each block; 0: it is not
};

struct StateBlock {
  int tokens = 0;
  int64_t padded_page = 0;    // of the recurrent layers; 0: their page is not the smaller one
  double padded_percent = 0;  // more than the state takes
};
// `tokens` only grows. Empty when the result does not fit.
std::optional<StateBlock> AlignToStates(const StateNeed& need, int tokens);

// Layers in a wider type need `wide_token_bytes` where the primary ones need `token_bytes`: a
// primary block must hold the wide page of its smallest kernel block. Empty when it does not fit.
std::optional<int> AlignToWideType(int tokens, int smallest_kernel_block, int64_t token_bytes,
                                   int64_t wide_token_bytes);

}  // namespace ashlar
