// Any bytes as a spec: an answer within the limits, and a document that is read back as itself.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "spec/spec.h"

// Longer keys than this are none for yaml-cpp unless a "?" announces them.
constexpr size_t kKeyBytes = 1024;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using ashlar::Check;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  ashlar::Result<ashlar::Spec> spec = ashlar::LoadSpec(text, "m.yaml");
  if (!spec.ok()) {
    Check(spec.problems().size() <= 51, "a report has an end");
    for (const ashlar::Problem& problem : spec.problems()) {
      Check(problem.place.find("m.yaml") != std::string::npos, "a problem has a place");
      Check(!problem.found.empty() && !problem.allowed.empty() && !problem.next.empty(),
            "a problem has four parts");
    }
    return 0;
  }
  Check(!spec->name.empty(), "every model has a name");
  if (spec->document.size() > kKeyBytes) return 0;
  ashlar::Result<ashlar::Spec> again = ashlar::LoadSpec(spec->document, "document");
  Check(again.ok(), "the document of a spec is a spec");
  Check(again->digest == spec->digest, "with the same digest");
  return 0;
}
