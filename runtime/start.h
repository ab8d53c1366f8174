// `ashlar serve`: the line from a spec file to an answered request, written out.
#pragma once

#include <string>

namespace ashlar {

struct ServeOptions {
  std::string spec_file;
  int port = 0;                  // 0: the spec's
  bool exit_on_reject = false;   // else a rejected model stays alive, unready, and explains itself
  std::string plugin_directory;  // empty: beside the executable
  std::string termination_log =
      "/dev/termination-log";  // written with exit_on_reject when it exists
};

// Returns the exit status: 0 after a drain, 2 + the index of the failed check after a rejection.
int Serve(const ServeOptions& options);

}  // namespace ashlar
