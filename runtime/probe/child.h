// Asks a driver in a child process. A driver may hang in the kernel, or crash, for as long as its
// GPU is ill; the runtime must stay alive and say so.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "probe/accelerators.h"

namespace ashlar {

// What `ask` returned in the child. Broken when the child crashed, answered nothing readable, or
// took longer than `limit`; it is then killed and not waited for. `ask` runs in a copy of this
// process with one thread and without its open files.
Accelerators AskInChild(const std::string& platform, std::chrono::milliseconds limit,
                        const std::function<Accelerators()>& ask);

}  // namespace ashlar
