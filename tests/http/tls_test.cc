#include "http/tls.h"

#include <gmock/gmock.h>

#include <fstream>

#include "http/server.h"
#include "support/http_client.h"
#include "support/tls_client.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

class TlsTest : public testing::Test {
 protected:
  void Start(HttpLimits limits = {}) {
    HttpServer::Options options;
    options.host = "127.0.0.1";
    options.port = 0;
    options.limits = limits;
    options.certificate_file = files_.certificate();
    options.key_file = files_.key();
    auto echo = [](const HttpRequest& request, HttpResponder& responder) {
      responder.Send(200, {}, request.body);
    };
    auto started = HttpServer::Start(std::move(options), {{"POST", "/echo", echo}});
    ASSERT_TRUE(started.ok()) << Text(started.problems());
    server_ = std::move(*started);
  }
  test::TlsClient Client() { return {server_->port(), files_.certificate()}; }

  test::TlsFiles files_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(TlsTest, OneConnectionCarriesRequestsOfEverySize) {
  Start();
  test::TlsClient client = Client();
  ASSERT_TRUE(client.connected());
  for (size_t size : {size_t{1}, size_t{16'384}, size_t{3'000'000}, size_t{0}}) {
    std::string body(size, 'a');
    EXPECT_EQ(client.Post("/echo", body), body) << size;
  }
}

TEST_F(TlsTest, PlainTextIsDroppedAndNothingElse) {
  Start();
  EXPECT_EQ(test::RawClient(server_->port()).Post("/echo", "x").status, 0);
  EXPECT_EQ(server_->counters().malformed, 1);
  EXPECT_EQ(Client().Post("/echo", "y"), "y");
}

TEST_F(TlsTest, APeerThatDoesNotShakeHandsIsTimedOut) {
  HttpLimits limits;
  limits.head_seconds = 0.1;
  Start(limits);
  test::RawClient client(server_->port());
  EXPECT_EQ(client.ReadAll(), "");
  EXPECT_EQ(server_->counters().timed_out, 1);
}

TEST_F(TlsTest, AReplacedCertificateIsShownToTheNextConnection) {
  Start();
  test::TlsClient before = Client();
  EXPECT_EQ(before.serial(), 1);
  files_.Make(2);
  EXPECT_EQ(Client().serial(), 2);
  EXPECT_EQ(before.Post("/echo", "still there"), "still there");
}

TEST_F(TlsTest, AnUnusableReplacementIsNotUsed) {
  Start();
  std::string trusted = files_.certificate() + ".kept";
  std::filesystem::copy_file(files_.certificate(), trusted);
  std::ofstream(files_.certificate()) << "no certificate";
  EXPECT_EQ(test::TlsClient(server_->port(), trusted).serial(), 1);
}

TEST(TlsCertificate, WhatCannotBeUsedIsNamed) {
  test::TlsFiles files, others;
  auto load = [](const std::string& certificate, const std::string& key) {
    auto loaded = TlsCertificate::Load(certificate, key);
    return loaded ? std::string() : Text(loaded.problems());
  };
  EXPECT_EQ(load(files.certificate(), files.key()), "");
  EXPECT_THAT(load("/nowhere/tls.crt", files.key()),
              testing::AllOf(testing::StartsWith("/nowhere/tls.crt: "),
                             HasSubstr("a certificate and its chain in PEM; ")));
  EXPECT_THAT(load(files.certificate(), others.key()),
              testing::AllOf(testing::StartsWith(others.key()), HasSubstr("mismatch")));
}

}  // namespace
}  // namespace ashlar
