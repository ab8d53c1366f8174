// How a plugin reports failure: one line a thread, for last_error().
#pragma once

#include <string>

namespace ashlar {

// Remembers the line for this thread and returns ASHLAR_FAILED.
int Failed(const std::string& line);
// The line of this thread's last failure, "" before one; valid until the next.
const char* LastError();

}  // namespace ashlar
