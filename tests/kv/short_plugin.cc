// The reference plugin on a device that has less memory than it should: every allocation above a
// size that a test sets is refused.
#include <dlfcn.h>

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

int Alloc(ashlar_device* device, int64_t bytes, void** out) {
  ++ashlar_test_allocations;
  if (bytes > ashlar_test_most_bytes) return ASHLAR_FAILED;
  return Original()->alloc(device, bytes, out);
}

}  // namespace

const ashlar_plugin* ashlar_plugin_table(void) {
  static ashlar_plugin table = [] {
    ashlar_plugin copy = *Original();
    copy.alloc = Alloc;
    return copy;
  }();
  return &table;
}
