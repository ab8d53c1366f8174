// Any bytes as a shell script: words that hold no more than the script, and arguments of any kind
// as a command line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "import/import.h"
#include "import/words.h"
#include "spec/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using ashlar::Check;
  std::string_view script(reinterpret_cast<const char*>(data), size);
  Check(ashlar::Substitute(script, {}, true) == script, "without values nothing is replaced");
  (void)ashlar::Substitute(script, {{"A", "b"}, {"LONG_NAME", "$A"}}, true);

  auto commands = ashlar::ShellCommands(script, "script");
  if (!commands.ok()) return 0;
  size_t bytes = 0;
  for (const std::vector<std::string>& words : *commands) {
    Check(!words.empty(), "a command has a word");
    for (const std::string& word : words) bytes += word.size();
    ashlar::Result<ashlar::Imported> imported = ashlar::ImportCommand(words);
    if (imported.ok())
      Check(ashlar::LoadSpec(imported->document.dump(), "import").ok(),
            "what is imported is a spec");
  }
  Check(bytes <= size, "no word says more than the script");
  return 0;
}
