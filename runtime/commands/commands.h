// The subcommands that answer and exit. Each returns the program's exit status.
#pragma once

#include <string>
#include <vector>

#include "base/problem.h"
#include "base/result.h"
#include "probe/platform.h"

namespace ashlar {

inline constexpr int kRefused = 2;  // the input has problems; they are on stderr

// Problems on stderr; kRefused.
int Report(const Problems& problems);

// A capture or a profile; "": this machine with the plugins of that folder.
Result<Platform> PlatformOf(const std::string& file_or_name, const std::string& plugins);

struct PlanOptions {
  std::string file;
  std::string platform;  // a capture or a profile; "": this machine
  std::string plugins;   // folder of plugins for this machine; "": the default
  std::string output = "text";
  bool full = false;  // of the text: every candidate with its reasons, every stride
  bool emit_config = false;
  bool sweep = false;
  std::string with;                  // another plan's document
  std::string catalogue = "ashlar";  // vllm: what vLLM would choose, for comparison
  std::string assume;                // of the installation that the catalogue is of
};
// With --with: 0 blocks pass as they are, 1 after the change that is printed, 3 only by a repack, 4
// never.
int PlanCommand(const PlanOptions& options);

// 0: nothing that needs approval; 1: the contract or a choice changed.
int DiffCommand(const std::string& from, const std::string& to);

struct ImportOptions {
  std::string file;       // a manifest, or ""
  std::string container;  // of the manifest
  std::vector<std::string> words;
  std::string config;    // the model's config.json or its folder; "": source.path, if it is here
  std::string platform;  // to compare on: a capture or a profile; "": this machine
};
// Where the model's geometry is at hand, what vLLM would choose stands beside what the plan
// chooses. kRefused also when a flag is refused: the spec is printed all the same, and says so.
int ImportSpec(const ImportOptions& options);

// docs/backends.md on stdout.
int BackendsCommand();

int ProbeCommand(const std::string& capture, const std::string& plugins);
// A model's files need not be here; a built-in model must be one of this binary's.
int ValidateCommand(const std::string& file);

}  // namespace ashlar
