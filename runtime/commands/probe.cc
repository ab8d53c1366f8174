#include <fstream>
#include <iostream>

#include "commands/commands.h"
#include "probe/platform.h"

namespace ashlar {

Result<Platform> PlatformOf(const std::string& file_or_name, const std::string& plugins) {
  if (!file_or_name.empty()) return ReadPlatform(file_or_name);
  return ProbePlatform({.plugin_directory = plugins, .root = ""});
}

int ProbeCommand(const std::string& capture, const std::string& plugins) {
  Platform platform = ProbePlatform({.plugin_directory = plugins, .root = ""});
  std::string document = ToJson(platform).dump(2);
  if (capture.empty()) {
    std::cout << document << std::endl;
    return 0;
  }
  std::ofstream file(capture);
  file << document << std::endl;
  if (!file)
    return Report({{capture, "cannot be written", "a writable path", "choose another file"}});
  return 0;
}

}  // namespace ashlar
