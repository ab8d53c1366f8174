// The reference plugin on a device that has less memory than it should: an allocation that would
// take more than a test allows in all is refused.
#include <dlfcn.h>

#include <map>

#include "ashlar_plugin.h"

extern "C" {
int64_t ashlar_test_most_bytes = 0;
// Allocations that were asked for, refused ones too.
int ashlar_test_allocations = 0;
const ashlar_plugin* ashlar_plugin_table(void);
}

namespace {

const ashlar_plugin* Original() {
  static const auto table = reinterpret_cast<ashlar_plugin_table_fn>(
      dlsym(dlopen(REFERENCE_PLUGIN, RTLD_NOW | RTLD_LOCAL), ASHLAR_PLUGIN_SYMBOL));
  return table();
}

std::map<void*, int64_t> taken;

int Alloc(ashlar_device* device, int64_t bytes, void** out) {
  ++ashlar_test_allocations;
  int64_t left = ashlar_test_most_bytes;
  for (const auto& [memory, size] : taken) left -= size;
  if (bytes > left) return ASHLAR_FAILED;
  int code = Original()->alloc(device, bytes, out);
  if (code == ASHLAR_OK) taken[*out] = bytes;
  return code;
}

void Release(ashlar_device* device, void* memory) {
  taken.erase(memory);
  Original()->release(device, memory);
}

}  // namespace

const ashlar_plugin* ashlar_plugin_table(void) {
  static ashlar_plugin table = [] {
    ashlar_plugin copy = *Original();
    copy.alloc = Alloc;
    copy.release = Release;
    return copy;
  }();
  return &table;
}
