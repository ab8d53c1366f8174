// What a document must be before any YAML is read: UTF-8, printable, indented with spaces.
#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"

namespace ashlar {

inline constexpr size_t kSpecDocumentBytes = 256 * 1024;

// Every rule that `text` breaks, each once, at its first place. `name` stands for the file.
Problems CheckSourceText(std::string_view text, const std::string& name);

// Bytes of the UTF-8 sequence at the front of `text`; 0 when there is no valid one (overlong forms,
// surrogates and code points above U+10FFFF are invalid).
size_t Utf8SequenceBytes(std::string_view text);

// Control characters as \xNN, cut to `limit` bytes at a character boundary with "..." behind.
std::string Printable(std::string_view text, size_t limit = 60);

// C0 controls but tab and line ends, DEL, and C1 controls.
bool IsControl(std::string_view sequence);

}  // namespace ashlar
