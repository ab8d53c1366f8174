#include "serve/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace ashlar {
namespace {

// Byte by byte: the text ends as soon as any stop string is complete.
std::string Model(const std::string& text, const std::vector<std::string>& stops, bool keep) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) return text.substr(0, keep ? end : end - longest);
  }
  return text;
}

std::string Match(const std::vector<std::string>& pieces, const std::vector<std::string>& stops,
                  bool keep = false) {
  StopMatcher matcher(stops, keep);
  std::string out;
  for (const std::string& piece : pieces) out += matcher.Push(piece);
  if (!matcher.stopped()) out += matcher.Finish();
  return out;
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStop) {
  StopMatcher matcher({"morrow"}, false);
  EXPECT_EQ(matcher.Push("to"), "to");
  EXPECT_EQ(matcher.Push("mor"), "");
  EXPECT_EQ(matcher.Push("e"), "more");
  EXPECT_EQ(matcher.Push("morr"), "");
  EXPECT_EQ(matcher.Push("ow and on"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.Push("after"), "");
}

TEST(StopMatcher, GivesBackWhatItHeldAtTheEnd) {
  StopMatcher matcher({"@@@@"}, false);
  EXPECT_EQ(matcher.Push("all done.@@"), "all done.");
  EXPECT_EQ(matcher.Finish(), "@@");
}

TEST(StopMatcher, TheFirstCompleteMatchWins) {
  EXPECT_EQ(Match({"xabcd"}, {"abcd", "bc"}), "xa");
  EXPECT_EQ(Match({"xabc"}, {"abc", "bc"}), "x");
  EXPECT_EQ(Match({"xabc"}, {"abc", "bc"}, true), "xabc");
}

TEST(StopMatcher, NoStopsMeansNoDelay) {
  StopMatcher matcher({}, false);
  EXPECT_EQ(matcher.Push("anything"), "anything");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcher, HoldsAtMostOneLessThanTheLongestStop) {
  StopMatcher matcher({"aaaaa"}, false);
  std::string out;
  for (int i = 0; i < 4; ++i) out += matcher.Push("a");
  EXPECT_EQ(out, "");
  EXPECT_EQ(matcher.Push("b"), "aaaab");
}

TEST(StopMatcher, AgreesWithTheModelHoweverTheTextIsCut) {
  uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  auto text = [&](size_t least, size_t most) {
    std::string out(least + random() % (most - least + 1), 'a');
    for (char& c : out) c = static_cast<char>('a' + random() % 3);
    return out;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = random() % 4; i > 0; --i) stops.push_back(text(1, 5));
    std::string whole = text(0, 24);
    std::vector<std::string> pieces;
    for (size_t at = 0; at < whole.size();) {
      size_t size = 1 + random() % 4;
      pieces.push_back(whole.substr(at, size));
      at += size;
    }
    bool keep = random() % 2 == 0;
    ASSERT_EQ(Match(pieces, stops, keep), Model(whole, stops, keep)) << whole;
  }
}

}  // namespace
}  // namespace ashlar
