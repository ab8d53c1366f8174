// The spelling that somebody probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ashlar {

// The candidate within a third of `word`'s length in edits (swaps count one), or "" when none is
// that near.
std::string Nearest(std::string_view word, std::span<const std::string> candidates);

// "a, b or c".
std::string OneOf(std::span<const std::string> words);

}  // namespace ashlar
