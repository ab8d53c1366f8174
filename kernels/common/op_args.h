// Checks of whole argument lists for plugins whose arrays are in host memory. Each returns "" or
// what is wrong.
#pragma once

#include <cstdint>
#include <string>

#include "ashlar_plugin.h"
#include "common/shapes.h"

namespace ashlar {

// Of caches that every host plugin takes.
inline constexpr uint32_t kHostKvDtypes = kFloats;

// Tensors, rotation, and every slot within the cache, whose elements are of one of `kv_dtypes`.
std::string CheckQkvPrepare(const ashlar_qkv_prepare& args, uint32_t kv_dtypes = kHostKvDtypes);

// Tensors, and for each sequence its queries, context and those blocks that a visible key needs;
// other entries of the table are not looked at.
std::string CheckAttention(const ashlar_attention& args, uint32_t kv_dtypes = kHostKvDtypes);

// Position in its sequence of query token `token` (index in the step).
inline int64_t QueryPosition(const ashlar_attention& args, int32_t sequence, int64_t token) {
  return args.context[sequence] - (args.query_start[sequence + 1] - token);
}
// First key that a query at this position sees; the last is its own.
inline int64_t FirstVisible(const ashlar_attention& args, int64_t position) {
  const int64_t first = args.window > 0 ? position - args.window + 1 : 0;
  return first > 0 ? first : 0;
}

}  // namespace ashlar
