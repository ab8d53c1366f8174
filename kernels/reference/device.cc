#include "device.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>

#include "ashlar_rows.h"

ashlar_device::ashlar_device(int threads)
    : pool(threads), launches(static_cast<size_t>(ashlar_reference_row_count)) {}

namespace ashlar::reference {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

int Probe(ashlar_probe* out) {
  *out = {};
  out->devices = 1;
  std::strncpy(out->detail, "plain loops, float32", sizeof out->detail - 1);
  return ASHLAR_OK;
}

int Open(const ashlar_open* args, ashlar_device** out) {
  if (args->index != 0) return Failed("the reference platform has one device, index 0");
  if (args->threads < 0) return Failed("threads is negative");
  try {
    *out = new ashlar_device(args->threads == 0 ? UsableThreads() : args->threads);
  } catch (const std::bad_alloc&) {
    return Failed("out of memory");
  } catch (const std::system_error& error) {
    return Failed(std::string("cannot start a thread: ") + error.what());
  }
  return ASHLAR_OK;
}

void Close(ashlar_device* device) { delete device; }

// calloc leaves fresh pages untouched, so a large arena costs nothing until it is written. The
// pointer that free() needs stands just before the aligned block.
int Alloc(ashlar_device*, int64_t bytes, void** out) {
  if (bytes < 0) return Failed("a negative number of bytes");
  const auto size = static_cast<size_t>(bytes);
  size_t room = size + kAlignment;
  void* raw = std::calloc(1, room + sizeof(void*));
  if (raw == nullptr) return Failed("out of memory: " + std::to_string(bytes) + " bytes");
  void* aligned = static_cast<void**>(raw) + 1;
  std::align(kAlignment, size, aligned, room);
  static_cast<void**>(aligned)[-1] = raw;
  *out = aligned;
  return ASHLAR_OK;
}

void Release(ashlar_device*, void* memory) {
  if (memory != nullptr) std::free(static_cast<void**>(memory)[-1]);
}

int Copy(ashlar_device*, ashlar_stream*, void* to, const void* from, int64_t bytes) {
  if (bytes < 0) return Failed("copy: a negative number of bytes");
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  return ASHLAR_OK;
}

int64_t RowLaunches(const ashlar_device* device, int32_t row) {
  if (row < 0 || row >= static_cast<int32_t>(device->launches.size())) return 0;
  return device->launches[static_cast<size_t>(row)];
}

}  // namespace ashlar::reference
