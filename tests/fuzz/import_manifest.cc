// Any bytes as a manifest: a spec that the runtime reads, or problems in full.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "import/import.h"
#include "spec/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using ashlar::Check;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  ashlar::Result<ashlar::Imported> imported = ashlar::ImportManifest(text, "pod.yaml", "");
  if (!imported.ok()) {
    Check(!imported.problems().empty(), "a refusal has a problem");
    for (const ashlar::Problem& problem : imported.problems()) {
      Check(problem.place.find("pod.yaml") != std::string::npos, "a problem has a place");
      Check(!problem.found.empty(), "a problem says what was found");
    }
    return 0;
  }
  for (const ashlar::ImportNote& note : imported->notes) {
    Check(!note.flag.empty(), "a note names what it is about");
    bool mapped = note.outcome == ashlar::ImportNote::Outcome::kMapped;
    Check(mapped != note.field.empty(), "what is mapped has a field, and nothing else has");
  }
  Check(ashlar::LoadSpec(imported->document.dump(), "import").ok(), "what is imported is a spec");
  return 0;
}
