#include "operator-hooks/dns.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "operator-hooks/socket_address.h"

namespace ashlar::hooks {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kNoError = 0, kServerFailure = 2, kNoSuchName = 3;

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// Head of an answer to question 7 with one question for "a" and `answers` records.
std::string Head(int answers, int code = kNoError) {
  return Bytes({0, 7, 0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0, 1, 'a', 0, 0, 1, 0, 1});
}
std::string Address(int last) {
  return Bytes({0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 0, 0, last});
}
std::string Address6(int last) {
  return Bytes({0xc0, 12, 0, 28, 0, 1, 0, 0, 0, 5, 0, 16, 0xfd, 0}) + std::string(13, '\0') +
         Bytes({last});
}

TEST(Dns, QuestionNamesEachLabel) {
  std::string question = DnsQuestion("a.bc", 7, DnsType::kIPv4).value();
  EXPECT_EQ(question.substr(12, 10), Bytes({1, 'a', 2, 'b', 'c', 0, 0, 1, 0, 1}));
  question = DnsQuestion("a.bc", 7, DnsType::kIPv6).value();
  EXPECT_EQ(question.substr(12, 10), Bytes({1, 'a', 2, 'b', 'c', 0, 0, 28, 0, 1}));
}

TEST(Dns, NamesThatCannotBe) {
  EXPECT_FALSE(DnsQuestion("", 7, DnsType::kIPv4));
  EXPECT_FALSE(DnsQuestion("a..b", 7, DnsType::kIPv4));
  EXPECT_FALSE(DnsQuestion(std::string(64, 'a'), 7, DnsType::kIPv4));
  EXPECT_FALSE(DnsQuestion(std::string(254, 'a'), 7, DnsType::kIPv4));
}

TEST(Dns, AddressesAreSorted) {
  EXPECT_THAT(ReadDnsAnswer(Head(2) + Address(9) + Address(3), 7)->addresses,
              ElementsAre("10.0.0.3", "10.0.0.9"));
  EXPECT_THAT(ReadDnsAnswer(Head(2) + Address6(9) + Address6(3), 7)->addresses,
              ElementsAre("fd00::3", "fd00::9"));
}

TEST(Dns, ANameWithoutAddressesMayExist) {
  EXPECT_TRUE(ReadDnsAnswer(Head(0), 7)->name_exists);
  EXPECT_FALSE(ReadDnsAnswer(Head(0, kNoSuchName), 7)->name_exists);
}

TEST(Dns, EveryCutIsRefusedAndNoneCrashes) {
  const std::string whole = Head(2) + Address(3) + Address6(3);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(ReadDnsAnswer(whole.substr(0, size), 7)) << size;
  EXPECT_FALSE(ReadDnsAnswer(whole, 8)) << "an answer to another question";
}

// A server on IPv6's loopback that answers questions of each type with a code, and those for IPv6
// with an address when the code is kNoError.
class Server {
 public:
  Server(int code, int code6)
      : code_(code), code6_(code6), fd_(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in6 own{};
    own.sin6_family = AF_INET6;
    own.sin6_addr = in6addr_loopback;
    socklen_t size = sizeof own;
    if (bind(fd_, reinterpret_cast<const sockaddr*>(&own), size) != 0) return;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size);
    port_ = ntohs(own.sin6_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~Server() {
    shutdown(fd_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(fd_);
  }
  int port() const { return port_; }  // 0: this machine has no IPv6
  int questions() const { return questions_; }

 private:
  void Run() {
    char question[512];
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    ssize_t bytes;
    while ((bytes = recvfrom(fd_, question, sizeof question, 0, reinterpret_cast<sockaddr*>(&peer),
                             &size)) > 0) {
      ++questions_;
      const bool six = question[12 + 3 + 1] == 28;  // after the name "a"
      const bool known = six && code6_ == kNoError;
      const std::string answer = std::string(question, 2) +
                                 Head(known ? 1 : 0, six ? code6_ : code_).substr(2) +
                                 (known ? Address6(5) : "");
      sendto(fd_, answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&peer), size);
    }
  }

  const int code_, code6_;
  int fd_, port_ = 0;
  std::atomic<int> questions_ = 0;
  std::thread thread_;
};

TEST(Dns, WhereThereIsNoIPv4AnIPv6AddressIsAskedFor) {
  const Server server(kNoError, kNoError);
  if (server.port() == 0) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_THAT(Resolve("a", AddressAndPort("::1", server.port())).value(), ElementsAre("fd00::5"));
}

TEST(Dns, NoIPv4AddressIsAnAnswerWhereIPv6CannotBeAskedFor) {
  const Server server(kNoError, kServerFailure);
  if (server.port() == 0) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_THAT(Resolve("a", AddressAndPort("::1", server.port())).value(), IsEmpty());
  EXPECT_EQ(server.questions(), 2);
}

TEST(Dns, ANameThatDoesNotExistIsAskedForOnce) {
  const Server server(kNoSuchName, kNoError);
  if (server.port() == 0) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_THAT(Resolve("a", AddressAndPort("::1", server.port())).value(), IsEmpty());
  EXPECT_EQ(server.questions(), 1);
}

TEST(Dns, FailureAtTheFirstQuestionIsAProblem) {
  const Server server(kServerFailure, kNoError);
  if (server.port() == 0) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ(Resolve("a", AddressAndPort("::1", server.port())).problems()[0].found, "error code 2");
}

}  // namespace
}  // namespace ashlar::hooks
