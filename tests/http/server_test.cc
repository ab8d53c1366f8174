#include "http/server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

#include "support/http_client.h"

namespace ashlar {
namespace {

using test::Eventually;
using test::HttpAnswer;
using test::RawClient;
using Clock = std::chrono::steady_clock;

// Routes that echo, stream, hang and misbehave.
class ServerTest : public testing::Test {
 protected:
  void StartWith(HttpLimits limits) {
    HttpServer::Options options;
    options.host = "127.0.0.1";
    options.port = 0;
    options.limits = limits;
    options.error_body = [](int status, std::string_view reason) {
      return std::to_string(status) + " " + std::string(reason);
    };
    options.answered_here = [this](const HttpRequest& request, int status,
                                   std::string_view reason) {
      std::lock_guard lock(mutex_);
      answered_here_.push_back(fmt::format("{} {} {} {}", request.method, request.path, status,
                                           reason.substr(0, reason.find(':'))));
      EXPECT_EQ(request.peer, "127.0.0.1");
      // Four parts, so that a client sees what is allowed and what to do.
      EXPECT_EQ(std::count(reason.begin(), reason.end(), ';'), 1) << reason;
      EXPECT_GE(std::count(reason.begin(), reason.end(), ':'), 2) << reason;
    };
    options.authorize = [](const HttpRequest& request) {
      return request.path == "/secret" && request.Header("authorization") != "Bearer k" ? 401 : 0;
    };
    auto started = HttpServer::Start(std::move(options), Routes());
    ASSERT_TRUE(started.ok()) << Text(started.problems());
    server_ = std::move(*started);
  }

  std::vector<HttpRoute> Routes() {
    return {
        {"POST", "/echo",
         [](const HttpRequest& request, HttpResponder& responder) {
           responder.Send(200, {{"X-Peer", request.peer}}, request.body);
         }},
        {"GET", "/health",
         [](const HttpRequest&, HttpResponder& responder) { responder.Send(200, {}, "well"); },
         true},
        {"GET", "/plain",
         [](const HttpRequest&, HttpResponder& responder) { responder.Send(200, {}, "plain"); }},
        {"GET", "/secret",
         [](const HttpRequest&, HttpResponder& responder) { responder.Send(200, {}, "s"); }},
        {"GET", "/models/*",
         [](const HttpRequest& request, HttpResponder& responder) {
           responder.Send(200, {}, request.path);
         }},
        {"GET", "/throw",
         [](const HttpRequest&, HttpResponder&) { throw std::runtime_error("inner text"); }},
        {"GET", "/nothing", [](const HttpRequest&, HttpResponder&) {}},
        {"GET", "/inject",
         [](const HttpRequest&, HttpResponder& responder) {
           responder.Send(200, {{"X-A", "b\r\nX-Evil: c"}}, "");
         }},
        {"GET", "/until-gone",  // streams until told to end or until the client leaves
         [this](const HttpRequest&, HttpResponder& responder) {
           responder.Begin(200, {});
           while (!release_ && !responder.ClientGone()) {
             if (!responder.Write("x")) break;
             usleep(5000);
           }
           gone_ += responder.ClientGone() ? 1 : 0;
           responder.End();
         }},
        {"GET", "/silent",  // writes nothing: only the socket can tell that the client left
         [this](const HttpRequest&, HttpResponder& responder) {
           while (!release_ && !responder.ClientGone()) usleep(5000);
           gone_ += responder.ClientGone() ? 1 : 0;
           responder.Send(200, {}, "");
         }},
        {"GET", "/flood",
         [this](const HttpRequest&, HttpResponder& responder) {
           responder.Begin(200, {});
           std::string block(1 << 20, 'x');
           while (responder.Write(block)) {
           }
           ++gone_;
           responder.End();
         }},
    };
  }

  RawClient Client() { return RawClient(server_->port()); }

  // Says `bytes`, reads the answer, and shows that the server still works and closed this one.
  HttpAnswer Hostile(const std::string& bytes) {
    RawClient client(server_->port());
    client.Say(bytes);
    HttpAnswer answer = client.Answer();
    EXPECT_EQ(answer.headers["connection"], "close") << bytes.substr(0, 60);
    EXPECT_EQ(client.ReadAll(), "") << bytes.substr(0, 60);
    EXPECT_EQ(RawClient(server_->port()).Get("/plain").status, 200);
    return answer;
  }

  // "METHOD PATH STATUS PLACE" of each answer that no handler gave; waits for the last of `count`.
  std::vector<std::string> AnsweredHere(size_t count) {
    auto all = [this] {
      std::lock_guard lock(mutex_);
      return answered_here_;
    };
    Eventually([&] { return all().size() >= count; });
    return all();
  }

  std::mutex mutex_;
  std::vector<std::string> answered_here_;
  std::atomic<bool> release_{false};
  std::atomic<int> gone_{0};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(ServerTest, ServesRequestAfterRequestOnOneConnection) {
  StartWith({});
  RawClient client = Client();
  for (int i = 0; i < 20; ++i) {
    HttpAnswer answer = client.Post("/echo", "body " + std::to_string(i));
    ASSERT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "body " + std::to_string(i));
    EXPECT_EQ(answer.headers["x-peer"], "127.0.0.1");
    EXPECT_FALSE(answer.headers.contains("connection"));
  }
  EXPECT_EQ(server_->counters().accepted, 1);
}

TEST_F(ServerTest, HeadIsGetWithoutBody) {
  StartWith({});
  RawClient client = Client();
  client.Say("HEAD /plain HTTP/1.1\r\nHost: a\r\n\r\n");
  HttpAnswer answer = client.Answer(true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["content-length"], "5");
  EXPECT_EQ(client.Get("/plain").body, "plain");
}

TEST_F(ServerTest, RoutesByExactPathAndMethod) {
  StartWith({});
  EXPECT_EQ(Client().Get("/plain/").status, 404);
  EXPECT_EQ(Client().Get("/PLAIN").status, 404);
  EXPECT_EQ(Client().Get("/%70lain").status, 404);
  EXPECT_EQ(Client().Get("/absent").body,
            "404 path: there is no such path: the paths that docs/api.md lists; check the URL");
  HttpAnswer answer = Client().Post("/plain", "");
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.headers["allow"], "GET, HEAD");
  EXPECT_EQ(Client().Get("/models/a").body, "/models/a");
  EXPECT_EQ(Client().Get("/models/").status, 404);
  EXPECT_EQ(Client().Get("/models/a/b").status, 404);
}

TEST_F(ServerTest, AuthorizesBeforeTheBodyIsRead) {
  StartWith({});
  RawClient client = Client();
  client.Say("GET /secret HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  HttpAnswer answer = client.Answer();
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.headers["www-authenticate"], "Bearer");
  EXPECT_EQ(Client().Get("/secret", "Authorization: Bearer k\r\n").status, 200);
}

TEST_F(ServerTest, TakesChunkedBodiesAndExpectContinue) {
  StartWith({});
  RawClient client = Client();
  client.Say(
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: "
      "100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Say("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(client.Answer().body, "abcde");
  EXPECT_EQ(client.Get("/plain").status, 200);
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  StartWith({});
  RawClient client = Client();
  client.Say(
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\none"
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\ntwo"
      "GET /plain HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.Answer().body, "one");
  EXPECT_EQ(client.Answer().body, "two");
  EXPECT_EQ(client.Answer().body, "plain");
  EXPECT_EQ(client.ReadAll(), "");
}

TEST_F(ServerTest, AnswersAClientThatClosedItsSendingSide) {
  StartWith({});
  RawClient client = Client();
  client.Say("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
  client.FinishSending();
  EXPECT_EQ(client.Answer().body, "plain");
  EXPECT_EQ(client.ReadAll(), "");
}

TEST_F(ServerTest, RefusesForgedFramingAndCloses) {
  StartWith({});
  const std::string post = "POST /echo HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(Hostile(post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd").status, 400);
  EXPECT_EQ(Hostile(post + "Host: b\r\n\r\n").status, 400);
  EXPECT_EQ(
      Hostile(post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").status,
      400);
  EXPECT_EQ(Hostile(post + "Content_Length: 3\r\n\r\nabc").status, 400);
  EXPECT_EQ(Hostile("GET /plain HTTP/1.1\nHost: a\n\n").status, 400);
  EXPECT_EQ(Hostile(post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n").status, 400);
  EXPECT_EQ(
      Hostile(post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n").status,
      400);
  EXPECT_EQ(Hostile(post + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc").status, 415);
  EXPECT_EQ(Hostile("GET /" + std::string(5000, 'a')).status, 414);
  EXPECT_EQ(Hostile(post + "X: " + std::string(9000, 'a')).status, 431);
  EXPECT_EQ(server_->counters().malformed, 10);
  EXPECT_EQ(AnsweredHere(10).size(), 10u);
}

TEST_F(ServerTest, TellsOfEachAnswerThatNoHandlerGave) {
  HttpLimits limits;
  limits.body_bytes = 10;
  StartWith(limits);
  Client().Get("/absent");
  Client().Post("/plain", "");
  Client().Get("/secret");
  Client().Get("/throw");
  Client().Post("/echo", "more than ten bytes");
  Client().Get("/plain", "X: " + std::string(9000, 'a') + "\r\n");
  EXPECT_THAT(AnsweredHere(6),
              testing::ElementsAre("GET /absent 404 path", "POST /plain 405 method",
                                   "GET /secret 401 header authorization", "GET /throw 500 server",
                                   "POST /echo 413 body", "GET /plain 431 header"));
}

TEST_F(ServerTest, TellsOfAConnectionThatFoundNoPlace) {
  HttpLimits limits;
  limits.connections = 1;
  limits.reserved_connections = 1;
  StartWith(limits);
  RawClient stream = Client();
  stream.Say("GET /until-gone HTTP/1.1\r\nHost: a\r\n\r\n");
  stream.ReadUntil("x");
  auto told = [&](const std::string& what) {
    std::vector<std::string> all = AnsweredHere(0);
    return std::find(all.begin(), all.end(), what) != all.end();
  };
  // Read on the reserved place, and refused there.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_EQ(Client().Get("/plain").status, 503);
    return told("GET /plain 503 connection");
  }));
  // One of these holds the reserved place for its head time; of the next nothing is read.
  std::vector<RawClient> crowd;
  EXPECT_TRUE(Eventually([&] {
    crowd.push_back(Client());
    return told("  503 connection");
  }));
  release_ = true;
}

TEST_F(ServerTest, TheSecretOfARefusalIsNotInAHeader) {
  StartWith({});
  HttpAnswer answer = Client().Get("/throw");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body,
            "500 server: internal error: an answer; report this with the server's log");
  for (const auto& [name, value] : answer.headers) {
    EXPECT_EQ(value.find("inner text"), std::string::npos) << name;
  }
  EXPECT_EQ(Client().Get("/nothing").status, 500);
}

TEST_F(ServerTest, DropsAHeaderThatHoldsALineBreak) {
  StartWith({});
  HttpAnswer answer = Client().Get("/inject");
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.headers.contains("x-evil"));
  EXPECT_FALSE(answer.headers.contains("x-a"));
}

TEST_F(ServerTest, BodyAtLimitAndOneOver) {
  HttpLimits limits;
  limits.body_bytes = 1000;
  StartWith(limits);
  EXPECT_EQ(Client().Post("/echo", std::string(1000, 'a')).body.size(), 1000u);
  HttpAnswer answer = Client().Post("/echo", std::string(1001, 'a'));
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.body,
            "413 body: it is too long: at most 1000 bytes; send a shorter one, or raise "
            "server.bodyBytes");
  // A client that goes on sending still gets to read the answer.
  EXPECT_EQ(Client().Post("/echo", std::string(4'000'000, 'a')).status, 413);
}

TEST_F(ServerTest, ASlowHeadIsEndedAtItsDeadlineHoweverItDrips) {
  HttpLimits limits;
  limits.head_seconds = 0.3;
  StartWith(limits);
  RawClient client = Client();
  auto start = Clock::now();
  client.Say("GET /plain HTTP/1.1\r\nHost: a\r\nX: ");
  while (client.Say("a") && !client.More(0.05) && !client.ended()) {
  }
  EXPECT_EQ(client.Answer().status, 408);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
  EXPECT_EQ(server_->counters().timed_out, 1);
  EXPECT_THAT(AnsweredHere(1), testing::ElementsAre("GET /plain 408 head"));
}

TEST_F(ServerTest, ASlowBodyIsEndedAtItsDeadlineHoweverItDrips) {
  HttpLimits limits;
  limits.body_seconds = 0.3;
  StartWith(limits);
  RawClient client = Client();
  auto start = Clock::now();
  client.Say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
  while (client.Say("a") && !client.More(0.05) && !client.ended()) {
  }
  EXPECT_EQ(client.Answer().status, 408);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(3));
  EXPECT_THAT(AnsweredHere(1), testing::ElementsAre("POST /echo 408 body"));
}

TEST_F(ServerTest, AnIdleConnectionIsClosedAfterItsTimeWithoutAWord) {
  HttpLimits limits;
  limits.idle_seconds = 0.1;
  limits.head_seconds = 0.3;
  StartWith(limits);
  RawClient used = Client();
  EXPECT_EQ(used.Get("/plain").status, 200);
  EXPECT_EQ(used.ReadAll(), "");
  EXPECT_EQ(server_->counters().timed_out, 0);
  RawClient silent = Client();
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_TRUE(Eventually([&] { return server_->counters().timed_out == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_->counters().open == 0; }));
}

TEST_F(ServerTest, AReaderThatIsStuckLosesItsStream) {
  HttpLimits limits;
  limits.stuck_reader_seconds = 0.2;
  StartWith(limits);
  RawClient client(server_->port(), 4096);
  client.Say("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return gone_ == 1; }));
  EXPECT_TRUE(Eventually([&] { return server_->counters().timed_out == 1; }));
}

TEST_F(ServerTest, AClientThatLeavesIsNoticedBetweenWrites) {
  StartWith({});
  {
    RawClient client = Client();
    client.Say("GET /until-gone HTTP/1.1\r\nHost: a\r\n\r\n");
    client.ReadUntil("x");
  }
  EXPECT_TRUE(Eventually([&] { return gone_ == 1; }, 2));
}

TEST_F(ServerTest, AClientThatLeavesIsNoticedBeforeTheFirstWrite) {
  StartWith({});
  {
    RawClient client = Client();
    client.Say("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(Eventually([&] { return server_->counters().open == 1; }));
    usleep(20'000);
    EXPECT_EQ(gone_, 0);
  }
  EXPECT_TRUE(Eventually([&] { return gone_ == 1; }, 2));
  release_ = true;
}

TEST_F(ServerTest, StreamsToHttp10WithoutChunks) {
  StartWith({});
  RawClient client = Client();
  client.Say("GET /until-gone HTTP/1.0\r\n\r\n");
  std::string head = client.ReadUntil("\r\n\r\n");
  EXPECT_EQ(head.find("Transfer-Encoding"), std::string::npos);
  client.ReadUntil("x");
  release_ = true;
  std::string rest = client.ReadAll();
  EXPECT_EQ(rest.find_first_not_of('x'), std::string::npos);
}

TEST_F(ServerTest, HealthAnswersWhileEveryPlaceStreams) {
  HttpLimits limits;
  limits.connections = 64;
  StartWith(limits);
  std::vector<RawClient> streams;
  for (int i = 0; i < 64; ++i) {
    streams.push_back(Client());
    streams.back().Say("GET /until-gone HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  for (RawClient& stream : streams) EXPECT_NE(stream.ReadUntil("x"), "");
  for (int i = 0; i < 10; ++i) {
    auto start = Clock::now();
    EXPECT_EQ(Client().Get("/health").body, "well");
    // Served at all, from the reserved places; how fast is measured end to end, without sanitizers.
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
    // The client has its answer a moment before the server has its thread back.
    EXPECT_TRUE(Eventually([&] { return server_->counters().open == 64; }));
  }
  HttpAnswer refused = Client().Get("/plain");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers["retry-after"], "1");
  EXPECT_EQ(server_->counters().refused, 1);
  release_ = true;
  for (RawClient& stream : streams)
    EXPECT_TRUE(stream.ReadUntil("0\r\n\r\n").ends_with("0\r\n\r\n"));
  EXPECT_EQ(Client().Get("/plain").status, 200);
}

TEST_F(ServerTest, ANewcomerTakesThePlaceOfAnIdleConnection) {
  HttpLimits limits;
  limits.connections = 2;
  StartWith(limits);
  RawClient first = Client();
  EXPECT_EQ(first.Get("/plain").status, 200);
  RawClient second = Client();
  EXPECT_EQ(second.Get("/plain").status, 200);
  // As soon as one of them waits, whenever its thread comes to that.
  EXPECT_TRUE(Eventually([&] { return Client().Get("/plain").status == 200; }));
  EXPECT_TRUE(Eventually([&] { return server_->counters().open <= 2; }));
}

TEST_F(ServerTest, RefusesBeyondTheReservedPlacesAtOnce) {
  HttpLimits limits;
  limits.connections = 1;
  limits.reserved_connections = 1;
  StartWith(limits);
  RawClient stream = Client();
  stream.Say("GET /until-gone HTTP/1.1\r\nHost: a\r\n\r\n");
  stream.ReadUntil("x");
  RawClient silent = Client();  // holds the reserved place for its short head time
  usleep(50'000);
  RawClient third = Client();
  EXPECT_EQ(third.Get("/health").status, 503);
  release_ = true;
  EXPECT_TRUE(Eventually([&] { return Client().Get("/health").status == 200; }));
}

TEST_F(ServerTest, AP22_SurvivesRunningOutOfFileHandles) {
  HttpLimits limits;
  StartWith(limits);
  RawClient stream = Client();
  stream.Say("GET /until-gone HTTP/1.1\r\nHost: a\r\n\r\n");
  stream.ReadUntil("x");
  // Clients and server share this process, so the clients take the handles up to the limit and
  // the server finds none left to accept with.
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  int top = dup(0);
  close(top);
  rlimit few{static_cast<rlim_t>(top + 60), old.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  {
    std::vector<std::unique_ptr<RawClient>> crowd;
    for (int i = 0; i < 100; ++i) crowd.push_back(std::make_unique<RawClient>(server_->port()));
    EXPECT_FALSE(crowd.back()->connected());  // the limit was really reached
    EXPECT_NE(stream.ReadUntil("x"), "");     // the live stream goes on
  }
  setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_TRUE(Eventually([&] { return Client().Get("/plain").status == 200; }));
  release_ = true;
  EXPECT_TRUE(stream.ReadUntil("0\r\n\r\n").ends_with("0\r\n\r\n"));
}

TEST_F(ServerTest, AnnouncesCloseAndGoesOnAccepting) {
  StartWith({});
  RawClient before = Client();
  EXPECT_EQ(before.Get("/plain").status, 200);
  server_->AnnounceClose();
  HttpAnswer answer = before.Get("/plain");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["connection"], "close");
  EXPECT_EQ(before.ReadAll(), "");
  EXPECT_EQ(Client().Get("/plain").headers["connection"], "close");
}

TEST_F(ServerTest, StopAcceptingServesWhatRunsAndClosesWhatWaits) {
  StartWith({});
  RawClient idle = Client();
  EXPECT_EQ(idle.Get("/plain").status, 200);
  RawClient stream = Client();
  stream.Say("GET /until-gone HTTP/1.1\r\nHost: a\r\n\r\n");
  stream.ReadUntil("x");
  server_->StopAccepting();
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_FALSE(Client().connected());
  EXPECT_NE(stream.ReadUntil("x"), "");
  release_ = true;
  EXPECT_TRUE(stream.ReadUntil("0\r\n\r\n").ends_with("0\r\n\r\n"));
  server_.reset();
}

TEST_F(ServerTest, APortInUseIsAProblem) {
  StartWith({});
  HttpServer::Options options;
  options.host = "127.0.0.1";
  options.port = server_->port();
  auto second = HttpServer::Start(options, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(Text(second.problems()),
              testing::MatchesRegex(
                  "server 127.0.0.1:[0-9]+: Address already in use: an address of this machine and "
                  "a port that no other process listens on; choose another server.host or "
                  "server.port, or end the other process"));
}

TEST_F(ServerTest, AClientThatResetsInTheBacklogDoesNotStopTheListener) {
  StartWith({});
  for (int i = 0; i < 200; ++i) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    linger reset{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
    close(fd);
  }
  EXPECT_EQ(Client().Get("/plain").status, 200);
  EXPECT_TRUE(Eventually([&] { return server_->counters().open <= 1; }));
}

}  // namespace
}  // namespace ashlar
