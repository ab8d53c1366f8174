// Weights are read in place: a file that is truncated while it is served takes them away, and the
// system answers the next read of a lost page with SIGBUS. There is nothing to go on with, but the
// process says which file it was before it ends.
#pragma once

#include <span>

#include "base/mapped_file.h"

namespace ashlar {

inline constexpr int kFileFaultStatus = 74;  // EX_IOERR

// While it lives, a fault inside one of `files` is explained on standard error and ends the process
// with kFileFaultStatus; any other fault does what it did before. The files outlive it. One at a
// time; made and destroyed by main's thread.
class FileFaultReport {
 public:
  explicit FileFaultReport(std::span<const MappedFile> files);
  ~FileFaultReport();
  FileFaultReport(const FileFaultReport&) = delete;
};

}  // namespace ashlar
