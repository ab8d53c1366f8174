// Copies blocks inside one allocation, in the order given. Bound by bytes.
#include <cstring>

#include "device.h"
#include "ops.h"

namespace ashlar::reference {

int CopyBlocks(ashlar_device*, ashlar_stream*, void* base, const int64_t* pairs, int32_t n,
               int64_t bytes) {
  if (n < 0 || bytes < 0) return Failed("copy_blocks: a negative count or size");
  for (int32_t i = 0; i < n; ++i) {
    const int64_t from = pairs[2 * i], to = pairs[2 * i + 1];
    if (from < 0 || to < 0) return Failed("copy_blocks: a negative offset");
    std::memmove(static_cast<char*>(base) + to, static_cast<const char*>(base) + from,
                 static_cast<size_t>(bytes));
  }
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
