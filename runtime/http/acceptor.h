// Listens, and hands each accepted socket on. The only includer of cpp-httplib, of which it uses
// the accept loop: docs/decisions/0020-http-guard.md says why its parser sees no byte.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace ashlar {

class Acceptor {
 public:
  // `take` is called on the acceptor's thread with a connected descriptor, which it owns.
  static Result<std::unique_ptr<Acceptor>> Start(const std::string& host, int port,
                                                 std::function<void(int fd)> take);
  // Stops.
  ~Acceptor();

  int port() const { return port_; }
  // Any number of times. New connections are refused by the system once this returns.
  void Stop();

 private:
  struct Loop;
  Acceptor(std::unique_ptr<Loop> loop, int port);

  std::unique_ptr<Loop> loop_;
  int port_;
};

}  // namespace ashlar
