// Finds stop strings in text that comes in pieces, and holds back only what may still become one.
// However the text is cut into pieces, the joined output is the same: the match that is complete
// first ends the text; of two complete at once, the longer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ashlar {

class StopMatcher {
 public:
  // No string is empty. `keep_match`: the output ends with the stop string instead of before it.
  StopMatcher(std::vector<std::string> stops, bool keep_match)
      : stops_(std::move(stops)), keep_match_(keep_match) {}

  // What may go out now. Nothing comes after a match.
  std::string Push(std::string_view text);
  // The text ended without a match: what was held back.
  std::string Finish();

  bool stopped() const { return stopped_; }

 private:
  size_t HeldBytes() const;

  std::vector<std::string> stops_;
  bool keep_match_;
  bool stopped_ = false;
  std::string pending_;  // a proper prefix of a stop string, between calls
};

}  // namespace ashlar
