#include "import/import.h"

#include <fmt/format.h>

#include <iostream>

#include "base/mapped_file.h"
#include "catalogue/comparison.h"
#include "commands/commands.h"
#include "plan/yaml.h"
#include "source.h"

namespace ashlar {
namespace {

constexpr int64_t kMaxBytes = 256 << 10;

Result<Imported> Import(const ImportOptions& options) {
  if (options.file.empty()) return ImportCommand(options.words);
  Result<std::string> text = ReadTextFile(options.file, kMaxBytes);
  if (!text) return text.problems();
  return ImportManifest(*text, options.file, options.container);
}

// Lines of what vLLM would choose; none when the model's geometry is not at hand.
Result<std::vector<std::string>> Compare(const ImportOptions& options, const Imported& imported) {
  Result<Spec> spec = LoadSpec(imported.document.dump(), "import");
  if (!spec) return spec.problems();
  spec->origins = Origins();  // its lines are nobody's yet
  if (!options.config.empty()) spec->source.path = options.config;
  Result<ModelSource> source = OpenSource(*spec, true);
  if (!source) {
    if (options.config.empty()) return std::vector<std::string>();
    return source.problems();
  }
  Result<Platform> platform = PlatformOf(options.platform, "");
  if (!platform) return platform.problems();
  Result<VllmAssume> assume = ParseAssume(imported.assume, "import");
  if (!assume) return assume.problems();
  Result<std::vector<std::string>> lines = CompareWithVllm(
      *spec, *platform, source->config, source->weights, *assume, imported.attention_backend);
  if (!lines) return std::vector<std::string>{lines.problems().front().Text()};
  lines->insert(lines->begin(), "on " + platform->name);
  return lines;
}

}  // namespace

int ImportSpec(const ImportOptions& options) {
  Result<Imported> imported = Import(options);
  if (!imported) return Report(imported.problems());
  Result<std::vector<std::string>> compared = Compare(options, *imported);
  if (!compared) return Report(compared.problems());
  bool refused = false;
  for (const ImportNote& note : imported->notes) {
    refused |= note.outcome == ImportNote::Outcome::kRefused;
    std::string tail = note.text.empty() ? "" : ": " + note.text;
    std::string field = note.field.empty() ? "" : " -> " + note.field;
    std::cout << fmt::format("# {:8}  {}{}{}\n", Name(note.outcome), note.flag, field, tail);
  }
  for (const std::string& line : *compared)
    std::cout << fmt::format("# {:8}  {}\n", "compare", line);
  std::cout << YamlOf(imported->document) << std::flush;
  return refused ? kRefused : 0;
}

}  // namespace ashlar
