#include "operator-hooks/dns.h"

#include <gmock/gmock.h>

namespace ashlar::hooks {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// Head of an answer to question 7 with one question for "a" and `answers` records.
std::string Head(int answers, int code = 0) {
  return Bytes({0, 7, 0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1});
}
std::string Address(int last) {
  return Bytes({0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 0, 0, last});
}

TEST(Dns, QuestionNamesEachLabel) {
  std::string question = DnsQuestion("a.bc", 7).value();
  EXPECT_EQ(question.substr(12, 10), Bytes({1, 'a', 2, 'b', 'c', 0, 0, 1, 0, 1}));
}

TEST(Dns, NamesThatCannotBe) {
  EXPECT_FALSE(DnsQuestion("", 7));
  EXPECT_FALSE(DnsQuestion("a..b", 7));
  EXPECT_FALSE(DnsQuestion(std::string(64, 'a'), 7));
  EXPECT_FALSE(DnsQuestion(std::string(254, 'a'), 7));
}

TEST(Dns, AddressesAreSorted) {
  EXPECT_THAT(DnsAddresses(Head(2) + Address(9) + Address(3), 7).value(),
              ElementsAre("10.0.0.3", "10.0.0.9"));
}

TEST(Dns, UnknownNameHasNoAddress) { EXPECT_THAT(DnsAddresses(Head(0, 3), 7).value(), IsEmpty()); }

TEST(Dns, EveryCutIsRefusedAndNoneCrashes) {
  const std::string whole = Head(1) + Address(3);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(DnsAddresses(whole.substr(0, size), 7)) << size;
  EXPECT_FALSE(DnsAddresses(whole, 8)) << "an answer to another question";
}

}  // namespace
}  // namespace ashlar::hooks
