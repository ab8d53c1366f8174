// Names for requests and answers.
#pragma once

#include <string>
#include <string_view>

namespace ashlar {

// "prefix-" and 24 random hex digits. Any thread.
std::string NewId(std::string_view prefix);

}  // namespace ashlar
