#include "http/acceptor.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/log.h"

namespace ashlar {
namespace {

constexpr int kBacklog = 1024;  // the library listens with 5, which drops bursts of clients

Problem Unusable(const std::string& host, int port, std::string found) {
  return {fmt::format("server {}:{}", host, port), std::move(found),
          "an address of this machine and a port that no other process listens on",
          "choose another server.host or server.port, or end the other process"};
}

// A listening socket, or why there is none.
Result<int> Listen(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* addresses = nullptr;
  int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses);
  if (error != 0) return Unusable(host, port, gai_strerror(error));
  std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(addresses, freeaddrinfo);
  std::string found = "no address";
  for (addrinfo* address = addresses; address != nullptr; address = address->ai_next) {
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (fd < 0) {
      found = std::strerror(errno);
      continue;
    }
    // Reuse of addresses only: with reuse of ports two servers would share one silently.
    int on = 1, off = 0;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->ai_family == AF_INET6) {
      setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, kBacklog) == 0)
      return fd;
    found = std::strerror(errno);
    close(fd);
  }
  return Unusable(host, port, found);
}

int BoundPort(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// Runs each hand-over at once on the acceptor's thread; threads are the server's affair.
class Inline final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override { task(); }
  void shutdown() override {}
};

}  // namespace

struct Acceptor::Loop final : private httplib::Server {
  Loop(int fd, std::function<void(int)> take) : fd_(fd), take_(std::move(take)) {
    new_task_queue = [] { return new Inline; };
    thread_ = std::thread([this] { Run(); });
  }

  ~Loop() override {
    Stop();
    thread_.join();
    close(fd_);
  }

  void Stop() {
    stopping_ = true;
    shutdown(fd_, SHUT_RDWR);  // wakes accept, and the system refuses from here on
  }

 private:
  // The library gives up listening at the first error of accept other than "too many open files"
  // (one client that resets early is enough) and closes the descriptor it was given: it gets a
  // duplicate, and another one after each error.
  void Run() {
    while (!stopping_) {
      int duplicate = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
      if (duplicate >= 0) {
        svr_sock_ = duplicate;
        listen_after_bind();
      }
      if (stopping_) return;
      LogWarning("http", "accepting connections failed and is tried again: {}",
                 std::strerror(errno));
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  bool process_and_close_socket(socket_t fd) override {
    take_(fd);
    return true;
  }

  const int fd_;
  std::function<void(int)> take_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

Acceptor::Acceptor(std::unique_ptr<Loop> loop, int port) : loop_(std::move(loop)), port_(port) {}

Acceptor::~Acceptor() = default;

Result<std::unique_ptr<Acceptor>> Acceptor::Start(const std::string& host, int port,
                                                  std::function<void(int)> take) {
  Result<int> fd = Listen(host, port);
  if (!fd) return fd.problems();
  return std::unique_ptr<Acceptor>(
      new Acceptor(std::make_unique<Loop>(*fd, std::move(take)), BoundPort(*fd)));
}

void Acceptor::Stop() { loop_->Stop(); }

}  // namespace ashlar
