// A shell's command line as words; the shell itself is never run.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ashlar {

// Commands of a script, split at ; & && | || and line ends, each as words: quotes and backslashes
// as POSIX sh reads them, comments left out. Substitutions ($VAR, $(...), `...`) stay as text.
Result<std::vector<std::vector<std::string>>> ShellCommands(std::string_view script,
                                                            const std::string& place);

// `text` with $(NAME), and $NAME and ${NAME} when `shell`, replaced from `values`; others stay.
std::string Substitute(std::string_view text, const std::map<std::string, std::string>& values,
                       bool shell);

// A word as messages show it; none stands as "".
std::string ShownWord(std::string_view word);

}  // namespace ashlar
