#include "operator-hooks/http_get.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "http/server.h"
#include "operator-hooks/socket_address.h"

namespace ashlar::hooks {
namespace {

using testing::HasSubstr;

class HttpGetTest : public testing::Test {
 protected:
  void SetUp() override { server_ = Start("127.0.0.1").value(); }
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& host) {
    HttpServer::Options options;
    options.host = host;
    options.port = 0;
    options.error_body = [](int, std::string_view) { return std::string("{}"); };
    auto answer = [](int status, std::string body) {
      return [=](const HttpRequest&, HttpResponder& out) { out.Send(status, {}, body); };
    };
    return HttpServer::Start(options, {{"GET", "/status", answer(200, "{\"ready\":true}")},
                                       {"GET", "/busy", answer(503, "{}")},
                                       {"GET", "/large", answer(200, std::string(2 << 20, 'x'))}});
  }
  Result<std::string> Get(const std::string& path) {
    return HttpGet("127.0.0.1", server_->port(), path, 5000);
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpGetTest, YieldsTheBody) { EXPECT_EQ(Get("/status").value(), "{\"ready\":true}"); }

bool MachineHasIPv6() {
  const SocketAddress loopback = MakeSocketAddress("::1", 0).value();
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound = fd >= 0 && bind(fd, loopback.get(), loopback.size) == 0;
  close(fd);
  return bound;
}

TEST_F(HttpGetTest, ReachesAnIPv6Address) {
  if (!MachineHasIPv6()) GTEST_SKIP() << "this machine has no IPv6";
  auto server = Start("::1").value();
  EXPECT_EQ(HttpGet("::1", server->port(), "/status", 5000).value(), "{\"ready\":true}");
}

TEST_F(HttpGetTest, OtherStatusIsNoAnswer) {
  EXPECT_THAT(Get("/busy").problems()[0].found, HasSubstr("503"));
}

TEST_F(HttpGetTest, AnswersBeyondReasonAreDropped) { EXPECT_FALSE(Get("/large")); }

TEST_F(HttpGetTest, NobodyThere) {
  int port = server_->port();
  server_.reset();
  EXPECT_EQ(HttpGet("127.0.0.1", port, "/status", 5000).problems()[0].found, "no connection");
  EXPECT_EQ(HttpGet("not an address", port, "/status", 5000).problems()[0].found, "no address");
}

}  // namespace
}  // namespace ashlar::hooks
