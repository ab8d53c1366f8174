#include <filesystem>
#include <fstream>

#include "base/mapped_file.h"
#include "support/hooks_cluster.h"

namespace ashlar::hooks {

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string golden = std::string(ASHLAR_SOURCE_DIR) + "/tests/hooks/golden/" + name;
  Result<std::string> expected = ReadTextFile(golden, 1 << 20);
  if (expected && *expected == text) return;
  const std::filesystem::path folder = std::filesystem::path(ASHLAR_BUILD_DIR) / "golden";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name) << text;
  ADD_FAILURE() << name << " differs; if it is meant to: cp " << (folder / name).string() << " "
                << golden;
}

}  // namespace ashlar::hooks
