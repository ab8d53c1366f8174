// The reference plugin's table, for plugins that change some of its ops.
#pragma once

#include <dlfcn.h>

#include "ashlar_plugin.h"

inline const ashlar_plugin& ReferenceTable() {
  static const auto table = reinterpret_cast<ashlar_plugin_table_fn>(
      dlsym(dlopen(REFERENCE_PLUGIN, RTLD_NOW | RTLD_LOCAL), ASHLAR_PLUGIN_SYMBOL));
  return *table();
}
