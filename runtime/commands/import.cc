#include "import/import.h"

#include <fmt/format.h>

#include <iostream>

#include "base/mapped_file.h"
#include "commands/commands.h"
#include "plan/yaml.h"

namespace ashlar {
namespace {

constexpr int64_t kMaxBytes = 256 << 10;

Result<Imported> Import(const ImportOptions& options) {
  if (options.file.empty()) return ImportCommand(options.words);
  Result<std::string> text = ReadTextFile(options.file, kMaxBytes);
  if (!text) return text.problems();
  return ImportManifest(*text, options.file, options.container);
}

}  // namespace

int ImportSpec(const ImportOptions& options) {
  Result<Imported> imported = Import(options);
  if (!imported) return Report(imported.problems());
  bool refused = false;
  for (const ImportNote& note : imported->notes) {
    refused |= note.outcome == ImportNote::Outcome::kRefused;
    std::string tail = note.text.empty() ? "" : ": " + note.text;
    std::string field = note.field.empty() ? "" : " -> " + note.field;
    std::cout << fmt::format("# {:8}  {}{}{}\n", Name(note.outcome), note.flag, field, tail);
  }
  std::cout << YamlOf(imported->document) << std::flush;
  return refused ? kRefused : 0;
}

}  // namespace ashlar
