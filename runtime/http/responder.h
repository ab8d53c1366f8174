// Writes one answer to one socket.
#pragma once

#include "http/server.h"
#include "http/socket.h"

namespace ashlar {

// "OK"; "" for a status that we never send.
std::string_view StatusText(int status);

class SocketResponder final : public HttpResponder {
 public:
  struct Options {
    double write_seconds = 60;  // for each piece, absolute
    bool without_body = false;  // answers HEAD
    bool http10 = false;        // no chunks: the body ends with the connection
    bool close = false;         // says so
  };
  SocketResponder(Socket& socket, const Options& options) : socket_(socket), options_(options) {}

  void Send(int status, const HttpHeaders& headers, std::string_view body) override;
  void Begin(int status, const HttpHeaders& headers) override;
  bool Write(std::string_view chunk) override;
  void End() override;
  bool ClientGone() override;

  // Says Connection: close if the head has not gone out yet.
  void CloseAfter() { options_.close = true; }
  bool answered() const { return state_ != State::kNothing; }
  bool timed_out() const { return timed_out_; }
  // Whether the connection may carry another request.
  bool reusable() const { return state_ == State::kEnded && alive_ && !options_.close; }
  // Whether the answer is whole.
  bool complete() const { return state_ == State::kEnded && alive_; }

 private:
  enum class State { kNothing, kStreaming, kEnded };

  std::string Head(int status, const HttpHeaders& headers) const;
  void Put(std::string_view bytes);

  Socket& socket_;
  Options options_;
  State state_ = State::kNothing;
  bool alive_ = true;
  bool timed_out_ = false;
};

}  // namespace ashlar
