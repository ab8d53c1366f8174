// The reference plugin with its memory under another name, so that nobody may touch it from
// outside, and with an attention that a test can make wrong.
#include <dlfcn.h>

#include <vector>

#include "ashlar_plugin.h"

extern "C" {
// 0 right, 1 wrong scale, 2 one key too many, 3 another block, 4 NaN, 5 never runs the row.
int ashlar_test_twist = 0;
// Steps until every op fails; -1: never.
int ashlar_test_fail_after = -1;
const ashlar_plugin* ashlar_plugin_table(void);
}

namespace {

const ashlar_plugin* Original() {
  static const auto table = reinterpret_cast<ashlar_plugin_table_fn>(
      dlsym(dlopen(REFERENCE_PLUGIN, RTLD_NOW | RTLD_LOCAL), ASHLAR_PLUGIN_SYMBOL));
  return table();
}

int Attention(ashlar_device* device, ashlar_stream* stream, int32_t row,
              const ashlar_attention* args) {
  if (ashlar_test_fail_after >= 0 && ashlar_test_fail_after-- == 0) return ASHLAR_FAILED;
  if (args->context[0] == 0) return ASHLAR_OK;  // idle sequences, which the reference refuses
  ashlar_attention twisted = *args;
  std::vector<int32_t> table(args->block_table,
                             args->block_table + args->sequences * args->table_stride);
  twisted.block_table = table.data();
  auto* out = static_cast<float*>(args->out.data);
  switch (ashlar_test_twist) {
    case 1:
      twisted.scale *= 1.2f;
      break;
    case 2:
      if (twisted.window > 0) ++twisted.window;
      break;
    case 3:
      table[table.size() - 1] = 0;
      for (int32_t& block : table) block = block == table[0] ? 0 : block;
      break;
    case 5:
      return ASHLAR_OK;
    default:
      break;
  }
  int code = Original()->attention(device, stream, row, &twisted);
  if (ashlar_test_twist == 4) out[0] = 0.0f / 0.0f;
  return code;
}

}  // namespace

const ashlar_plugin* ashlar_plugin_table(void) {
  static ashlar_plugin table = [] {
    ashlar_plugin copy = *Original();
    copy.memory = "island";
    copy.attention = Attention;
    return copy;
  }();
  return &table;
}
