// A client that says exactly what it is told, well formed or not. Reads with a deadline, so that a
// server that hangs fails a test and does not stop it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace ashlar::test {

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks joined
  bool whole = false;                          // framed to its end
};

class RawClient {
 public:
  explicit RawClient(int port, int receive_bytes = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_bytes > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  RawClient(RawClient&& other) noexcept
      : fd_(other.fd_), connected_(other.connected_), buffer_(std::move(other.buffer_)) {
    other.fd_ = -1;
  }
  RawClient(const RawClient&) = delete;
  ~RawClient() { Close(); }

  bool connected() const { return connected_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void FinishSending() { shutdown(fd_, SHUT_WR); }

  // False when the server no longer takes bytes.
  bool Say(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t put = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (put <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(put));
    }
    return true;
  }

  // Waits for more; false at the end of the connection or after `seconds`.
  bool More(double seconds = 120) {
    pollfd entry{fd_, POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
    char bytes[65536];
    ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) {
      ended_ = true;
      return false;
    }
    buffer_.append(bytes, static_cast<size_t>(got));
    return true;
  }

  // Everything until the server closes.
  std::string ReadAll() {
    while (More()) {
    }
    return std::exchange(buffer_, "");
  }

  // Up to and with `mark`; what came when it never does.
  std::string ReadUntil(std::string_view mark) {
    size_t at;
    while ((at = buffer_.find(mark)) == std::string::npos) {
      if (!More()) return std::exchange(buffer_, "");
    }
    std::string taken = buffer_.substr(0, at + mark.size());
    buffer_.erase(0, at + mark.size());
    return taken;
  }

  HttpAnswer Answer(bool without_body = false) {
    HttpAnswer answer;
    std::string head = ReadUntil("\r\n\r\n");
    if (head.size() < 12 || !head.starts_with("HTTP/1.1 ")) return answer;
    answer.status = std::stoi(head.substr(9, 3));
    if (answer.status == 100) return Answer(without_body);
    size_t line = head.find("\r\n") + 2;
    while (line < head.size() - 2) {
      size_t end = head.find("\r\n", line);
      std::string field = head.substr(line, end - line);
      size_t colon = field.find(": ");
      std::string name = field.substr(0, colon);
      for (char& c : name) c = static_cast<char>(tolower(c));
      answer.headers[name] = field.substr(colon + 2);
      line = end + 2;
    }
    if (without_body) {
      answer.whole = true;
    } else if (answer.headers.contains("content-length")) {
      size_t length = std::stoul(answer.headers["content-length"]);
      while (buffer_.size() < length && More()) {
      }
      answer.whole = buffer_.size() >= length;
      answer.body = buffer_.substr(0, length);
      buffer_.erase(0, length);
    } else if (answer.headers.contains("transfer-encoding")) {
      while (true) {
        std::string size = ReadUntil("\r\n");
        if (!size.ends_with("\r\n")) return answer;
        size_t length = std::stoul(size, nullptr, 16);
        while (buffer_.size() < length + 2 && More()) {
        }
        if (buffer_.size() < length + 2) return answer;
        answer.body += buffer_.substr(0, length);
        buffer_.erase(0, length + 2);
        if (length == 0) break;
      }
      answer.whole = true;
    } else {
      answer.body = ReadAll();
      answer.whole = ended_;
    }
    return answer;
  }

  HttpAnswer Get(const std::string& path, const std::string& headers = "") {
    Say("GET " + path + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n");
    return Answer();
  }

  HttpAnswer Post(const std::string& path, std::string_view body, const std::string& headers = "") {
    Say("POST " + path + " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n" + headers +
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body));
    return Answer();
  }

  bool ended() const { return ended_; }

 private:
  int fd_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  std::string buffer_;
};

// Polls `condition` for some seconds.
template <class Condition>
bool Eventually(Condition condition, double seconds = 10) {
  auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < until) {
    if (condition()) return true;
    usleep(2000);
  }
  return condition();
}

}  // namespace ashlar::test
