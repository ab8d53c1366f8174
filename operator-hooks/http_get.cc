#include "operator-hooks/http_get.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "operator-hooks/socket_address.h"

namespace ashlar::hooks {
namespace {

constexpr size_t kAnswerBytes = 1 << 20;
using Clock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(int family)
      : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  int fd() const { return fd_; }

  // False when the deadline passes first.
  bool Wait(short events, Clock::time_point deadline) const {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd entry{fd_, events, 0};
    return left.count() > 0 && poll(&entry, 1, static_cast<int>(left.count())) > 0;
  }

 private:
  int fd_;
};

// Everything until the peer closes. Empty when it does not in time, or sends too much.
std::string ReadAll(const Socket& socket, Clock::time_point deadline) {
  std::string answer;
  char buffer[16 << 10];
  while (socket.Wait(POLLIN, deadline)) {
    ssize_t size = recv(socket.fd(), buffer, sizeof buffer, 0);
    if (size == 0) return answer;
    if (size < 0 || answer.size() + static_cast<size_t>(size) > kAnswerBytes) break;
    answer.append(buffer, static_cast<size_t>(size));
  }
  return "";
}

}  // namespace

Result<std::string> HttpGet(const std::string& address, int port, const std::string& path,
                            int milliseconds) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  const std::string host = AddressAndPort(address, port);
  auto failed = [&](std::string_view what) {
    return Problem{fmt::format("http://{}{}", host, path), std::string(what), "a pod that answers",
                   "look at the pod's log"};
  };
  std::optional<SocketAddress> peer = MakeSocketAddress(address, static_cast<uint16_t>(port));
  if (!peer) return failed("no address");
  Socket socket(peer->family());
  if (socket.fd() < 0) return failed("no free file descriptor");
  int error = 0;
  socklen_t size = sizeof error;
  if (connect(socket.fd(), peer->get(), peer->size) != 0 &&
      (errno != EINPROGRESS || !socket.Wait(POLLOUT, deadline) ||
       getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)) {
    return failed("no connection");
  }
  std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", path, host);
  if (send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return failed("the connection broke");
  std::string answer = ReadAll(socket, deadline);
  size_t head = answer.find("\r\n\r\n");
  if (head == answer.npos) return failed("no whole answer in time");
  if (!answer.starts_with("HTTP/1.1 200 ")) return failed(answer.substr(0, answer.find('\r')));
  return answer.substr(head + 4);
}

}  // namespace ashlar::hooks
