// Any bytes as the body of a hook: an answer of 200 or a refusal that says why, the same both
// times.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "operator-hooks/hook_server.h"

namespace {

void CheckAnswer(const ashlar::hooks::HookAnswer& answer) {
  using ashlar::Check;
  Check(answer.status == 200 || answer.status == 400 || answer.status == 429, "2xx or 4xx");
  ashlar::Result<ashlar::Json> body = ashlar::ParseJson(answer.body, "answer");
  Check(body.ok() || answer.status == 200, "a refusal is JSON that everybody reads");
  if (answer.status == 200) return;
  Check(!(*body)["problems"].empty(), "a refusal says why");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar::hooks;
  std::string_view body(reinterpret_cast<const char*>(data), size);
  static const Settings settings;
  static HookMetrics metrics;
  SnapshotStore snapshots;
  HookService service(settings, snapshots, metrics, [] { return int64_t{1'800'000'000}; });
  HookAnswer first = service.Sync(body);
  CheckAnswer(first);
  CheckAnswer(service.Customize(body));
  CheckAnswer(service.Validate(body));
  ashlar::Check(service.Sync(body).body == first.body, "the same input, the same bytes");
  return 0;
}
