// Stop strings against a model that looks at each byte, and server-sent events that must stay one
// event whatever they carry. The input: sizes of pieces, stop strings and text, with 0xff between.
#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "serve/openai_response.h"
#include "serve/stop_matcher.h"

namespace ashlar {
namespace {

std::string Model(std::string_view text, const std::vector<std::string>& stops, bool keep) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return std::string(text.substr(0, keep ? end : end - longest));
  }
  return std::string(text);
}

void CheckEvent(std::string_view text) {
  std::string event = SseEvent({{"text", text}});
  Check(event.starts_with("data: ") && event.ends_with("\n\n"), "an event has its frame");
  std::string_view inside = std::string_view(event).substr(6, event.size() - 8);
  Check(inside.find_first_of("\r\n") == std::string_view::npos, "an event is one line");
  Json back = Json::parse(inside);
  Check(!IsValidUtf8(text) || back["text"] == text, "an event carries its text unchanged");
}

}  // namespace
}  // namespace ashlar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ashlar;
  std::string_view input(reinterpret_cast<const char*>(data), std::min<size_t>(size, 4096));
  std::vector<std::string> parts(1);
  for (char c : input) {
    if (c == '\xff') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  std::string text = parts.back();
  std::string sizes = parts.front();
  std::vector<std::string> stops;
  for (size_t i = 1; i + 1 < parts.size() && stops.size() < 4; ++i) {
    if (!parts[i].empty()) stops.push_back(parts[i].substr(0, 256));
  }
  for (bool keep : {false, true}) {
    StopMatcher matcher(stops, keep);
    std::string out;
    size_t at = 0, turn = 0;
    while (at < text.size()) {
      size_t piece =
          sizes.empty() ? 1 : 1 + static_cast<unsigned char>(sizes[turn++ % sizes.size()]) % 9;
      out += matcher.Push(std::string_view(text).substr(at, piece));
      at += piece;
    }
    if (!matcher.stopped()) out += matcher.Finish();
    Check(out == Model(text, stops, keep), "the matcher agrees with the model");
  }
  CheckEvent(text);
  return 0;
}
