#include "serve/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace ashlar {

std::string StopMatcher::Push(std::string_view text) {
  if (stopped_) return "";
  pending_ += text;
  size_t first = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    size_t at = pending_.find(stop);
    if (at == std::string::npos) continue;
    size_t stop_end = at + stop.size();
    if (end == std::string::npos || stop_end < end || (stop_end == end && at < first)) {
      first = at;
      end = stop_end;
    }
  }
  if (end != std::string::npos) {
    stopped_ = true;
    pending_.resize(keep_match_ ? end : first);
    return std::exchange(pending_, "");
  }
  size_t held = HeldBytes();
  std::string out = pending_.substr(0, pending_.size() - held);
  pending_.erase(0, out.size());
  return out;
}

std::string StopMatcher::Finish() { return std::exchange(pending_, ""); }

// Length of the longest suffix that a stop string starts with.
size_t StopMatcher::HeldBytes() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    size_t most = std::min(stop.size() - 1, pending_.size());
    for (size_t size = most; size > longest; --size) {
      if (pending_.compare(pending_.size() - size, size, stop, 0, size) == 0) longest = size;
    }
  }
  return longest;
}

}  // namespace ashlar
