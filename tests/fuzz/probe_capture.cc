// Any bytes as a captured platform: an answer within the limits, and a platform that comes back as
// itself.
#include <string_view>

#include "base/check.h"
#include "probe/platform.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  Result<Json> json = ParseJson({reinterpret_cast<const char*>(data), size}, "p.json");
  if (!json.ok()) return 0;
  Result<Platform> platform = PlatformFromJson(*json, "p.json");
  if (!platform.ok()) {
    Check(platform.problems().size() <= 50, "a report has an end");
    for (const Problem& problem : platform.problems()) {
      Check(problem.place.starts_with("p.json"), "a problem has a place");
      Check(!problem.found.empty() && !problem.allowed.empty() && !problem.next.empty(),
            "a problem has four parts");
      Check(problem.Text().size() < 2000, "a message stays short");
    }
    return 0;
  }
  const std::string text = DumpJson(ToJson(*platform));
  Result<Json> json_again = ParseJson(text, "again.json");
  Check(json_again.ok(), "what is written is JSON");
  Result<Platform> again = PlatformFromJson(*json_again, "again.json");
  Check(again.ok() && *again == *platform, "a platform comes back as it was");
  Check(DumpJson(ToJson(*again)) == text, "in the same bytes");
  return 0;
}
