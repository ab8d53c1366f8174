// The reference plugin with its memory under another name, so that nobody may touch it from
// outside, with an attention that a test can make wrong, and with steps that take their time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "reference_table.h"

extern "C" {
// 0 right, 1 wrong scale, 2 one key too many, 3 another block, 4 NaN, 5 never runs the row.
int ashlar_test_twist = 0;
// Steps until every op fails; -1: never.
int ashlar_test_fail_after = -1;
// Until the device has passed a mark. Steps run at once all the same.
std::atomic<int> ashlar_test_step_ms = 0;
const ashlar_plugin* ashlar_plugin_table(void);
}

namespace {

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
  int code = ReferenceTable().attention(device, stream, row, &twisted);
  if (ashlar_test_twist == 4) out[0] = 0.0f / 0.0f;
  return code;
}

// When the device will have passed it.
struct Event {
  std::chrono::steady_clock::time_point passed;
};
Event* Of(ashlar_event* event) { return reinterpret_cast<Event*>(event); }

int CreateEvent(ashlar_device*, ashlar_event** out) {
  *out = reinterpret_cast<ashlar_event*>(new Event);
  return ASHLAR_OK;
}
void DestroyEvent(ashlar_device*, ashlar_event* event) { delete Of(event); }
int RecordEvent(ashlar_device*, ashlar_stream*, ashlar_event* event) {
  static std::chrono::steady_clock::time_point last;  // steps run one after another
  last = std::max(last, std::chrono::steady_clock::now()) +
         std::chrono::milliseconds(ashlar_test_step_ms);
  Of(event)->passed = last;
  return ASHLAR_OK;
}
int WaitEvent(ashlar_device*, ashlar_event* event) {
  std::this_thread::sleep_until(Of(event)->passed);
  return ASHLAR_OK;
}
int AllocHost(ashlar_device*, int64_t bytes, void** out) {
  *out = std::malloc(static_cast<size_t>(bytes));
  return *out != nullptr ? ASHLAR_OK : ASHLAR_FAILED;
}
void ReleaseHost(ashlar_device*, void* memory) { std::free(memory); }

}  // namespace

const ashlar_plugin* ashlar_plugin_table(void) {
  static ashlar_plugin table = [] {
    ashlar_plugin copy = ReferenceTable();
    copy.memory = "island";
    copy.attention = Attention;
    copy.host_alloc = AllocHost;
    copy.host_release = ReleaseHost;
    copy.event_create = CreateEvent;
    copy.event_destroy = DestroyEvent;
    copy.event_record = RecordEvent;
    copy.event_wait = WaitEvent;
    return copy;
  }();
  return &table;
}
