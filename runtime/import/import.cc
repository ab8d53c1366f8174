#include "import/import.h"

#include "import/arguments.h"
#include "import/command.h"

namespace ashlar {

std::string_view Name(ImportNote::Outcome outcome) {
  switch (outcome) {
    case ImportNote::Outcome::kMapped:
      return "mapped";
    case ImportNote::Outcome::kNeedless:
      return "needless";
    case ImportNote::Outcome::kRefused:
      return "refused";
  }
  return "";
}

Result<Imported> ImportCommand(const std::vector<std::string>& words) {
  Importer importer("arguments");
  std::optional<std::vector<std::string>> arguments = ServerArguments(words);
  importer.Arguments(arguments.value_or(words));
  return importer.Finish();
}

}  // namespace ashlar
