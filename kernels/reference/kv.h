// Where an entry of the cache lies; the strides alone know the layout.
#pragma once

#include <cstdint>

#include "numbers.h"

namespace ashlar::reference {

// Of caches.
inline constexpr uint32_t kKvDtypes = kHostKvDtypes | ASHLAR_DTYPE_BIT(ASHLAR_F8_E4M3);

inline void* KvEntry(const ashlar_kv_view& kv, int64_t block, int64_t head, int64_t token) {
  return static_cast<char*>(kv.base) + block * kv.block_stride + head * kv.head_stride +
         token * kv.token_stride;
}

}  // namespace ashlar::reference
