// What one device can move at best: kernels that do nothing but read, or read and write.
#pragma once

#include <cstdint>

namespace ashlar::gpu_test {

// Launches on a stream of the plugin's. `bytes` is a multiple of 1 MiB. Reading writes one word at
// `sink` in a case that does not occur. False: the launch failed.
bool LaunchRead(void* stream, const void* from, int64_t bytes, void* sink);
bool LaunchCopy(void* stream, void* to, const void* from, int64_t bytes);

}  // namespace ashlar::gpu_test
