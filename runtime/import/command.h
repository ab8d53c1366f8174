// Which words of a command are the server's arguments.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ashlar {

// The words after "vllm serve" or "python -m vllm.entrypoints...."; empty when it runs something
// else.
std::optional<std::vector<std::string>> ServerArguments(const std::vector<std::string>& words);

}  // namespace ashlar
