#include "operator-hooks/dns.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "operator-hooks/socket_address.h"

namespace ashlar::hooks {
namespace {

constexpr uint16_t kTypeOpt = 41, kClassIn = 1;
constexpr uint16_t kDatagramBytes = 4096;
constexpr size_t kHeaderBytes = 12;
constexpr uint8_t kNoSuchName = 3;

void Put16(std::string& out, uint16_t value) {
  out += static_cast<char>(value >> 8);
  out += static_cast<char>(value & 0xff);
}

// Reads within the answer; once past its end every read yields 0 and ok() is false.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  uint8_t Byte() {
    if (at_ >= bytes_.size()) {
      ok_ = false;
      return 0;
    }
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  uint16_t Word() {
    uint16_t high = Byte();
    return static_cast<uint16_t>(high << 8 | Byte());
  }
  std::string_view Take(size_t size) {
    if (size > bytes_.size() - at_) {
      ok_ = false;
      return {};
    }
    std::string_view part = bytes_.substr(at_, size);
    at_ += size;
    return part;
  }
  // A name in place or by reference; what it says does not matter here.
  void SkipName() {
    for (uint8_t size = Byte(); ok_ && size != 0; size = Byte()) {
      if (size >= 0xc0) {
        Byte();
        return;
      }
      Take(size);
    }
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

Problem Unreadable(std::string_view what) {
  return {"DNS answer", std::string(what), "an answer to the question that was asked",
          "check --resolver"};
}

std::string AddressText(int family, const void* bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(family, bytes, text, sizeof text);
  return text;
}

Result<DnsAnswer> AskMachine(const std::string& name, DnsType type) {
  addrinfo hints{};
  hints.ai_family = type == DnsType::kIPv4 ? AF_INET : AF_INET6;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (error == EAI_NONAME || error == EAI_NODATA) return DnsAnswer{error == EAI_NODATA, {}};
  if (error != 0)
    return Problem{name, gai_strerror(error), "a DNS server that answers",
                   "check the cluster's DNS"};
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  std::vector<std::string> addresses;
  for (addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    const void* bytes = &reinterpret_cast<const sockaddr_in*>(entry->ai_addr)->sin_addr;
    if (entry->ai_family == AF_INET6) {
      bytes = &reinterpret_cast<const sockaddr_in6*>(entry->ai_addr)->sin6_addr;
    }
    addresses.push_back(AddressText(entry->ai_family, bytes));
  }
  std::sort(addresses.begin(), addresses.end());
  return DnsAnswer{true, std::move(addresses)};
}

Result<DnsAnswer> AskServer(const std::string& name, DnsType type, const std::string& server) {
  constexpr uint16_t kId = 0x5a17;  // each question has a socket of its own
  std::optional<SocketAddress> address = ReadAddressAndPort(server);
  std::optional<std::string> question = DnsQuestion(name, kId, type);
  if (!address || !question)
    return Problem{name, "cannot be asked of " + server,
                   "address:port or [address]:port of a DNS server", "check --resolver"};
  int fd = socket(address->family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Problem{name, "no socket", "a free file descriptor", "raise the limit"};
  timeval wait{.tv_sec = 2, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  char buffer[kDatagramBytes];
  ssize_t size = -1;
  if (connect(fd, address->get(), address->size) == 0 &&
      send(fd, question->data(), question->size(), 0) >= 0) {
    size = recv(fd, buffer, sizeof buffer, 0);
  }
  close(fd);
  if (size < static_cast<ssize_t>(kHeaderBytes))
    return Problem{name, "no answer from " + server, "a DNS server that answers",
                   "check --resolver"};
  return ReadDnsAnswer(std::string_view(buffer, static_cast<size_t>(size)), kId);
}

}  // namespace

std::optional<std::string> DnsQuestion(std::string_view name, uint16_t id, DnsType type) {
  if (name.empty() || name.size() > 253) return std::nullopt;
  std::string out;
  // Recursion desired; one question, and one additional record that allows large answers.
  for (uint16_t word : {id, uint16_t{0x0100}, uint16_t{1}, uint16_t{0}, uint16_t{0}, uint16_t{1}})
    Put16(out, word);
  for (size_t start = 0; start <= name.size();) {
    size_t dot = std::min(name.find('.', start), name.size());
    size_t size = dot - start;
    if (size == 0 || size > 63) return std::nullopt;
    out += static_cast<char>(size);
    out += name.substr(start, size);
    start = dot + 1;
  }
  out += '\0';
  Put16(out, static_cast<uint16_t>(type));
  Put16(out, kClassIn);
  out += '\0';
  Put16(out, kTypeOpt);
  Put16(out, kDatagramBytes);
  out.append(6, '\0');
  return out;
}

Result<DnsAnswer> ReadDnsAnswer(std::string_view answer, uint16_t id) {
  Cursor cursor(answer);
  uint16_t answered = cursor.Word(), flags = cursor.Word();
  uint16_t questions = cursor.Word(), answers = cursor.Word();
  cursor.Word();
  cursor.Word();
  if (!cursor.ok() || answered != id || (flags & 0x8000) == 0)
    return Unreadable("bytes that are no answer to it");
  if ((flags & 0xf) == kNoSuchName) return DnsAnswer{false, {}};
  if ((flags & 0xf) != 0) return Unreadable(fmt::format("error code {}", flags & 0xf));
  for (int i = 0; i < questions && cursor.ok(); ++i) {
    cursor.SkipName();
    cursor.Take(4);
  }
  std::vector<std::string> addresses;
  for (int i = 0; i < answers && cursor.ok(); ++i) {
    cursor.SkipName();
    uint16_t type = cursor.Word(), cls = cursor.Word();
    cursor.Take(4);  // how long it may be kept
    std::string_view data = cursor.Take(cursor.Word());
    if (!cursor.ok() || cls != kClassIn) continue;
    if (type == static_cast<uint16_t>(DnsType::kIPv4) && data.size() == sizeof(in_addr)) {
      addresses.push_back(AddressText(AF_INET, data.data()));
    }
    if (type == static_cast<uint16_t>(DnsType::kIPv6) && data.size() == sizeof(in6_addr)) {
      addresses.push_back(AddressText(AF_INET6, data.data()));
    }
  }
  if (!cursor.ok()) return Unreadable("an answer cut short");
  std::sort(addresses.begin(), addresses.end());
  return DnsAnswer{true, std::move(addresses)};
}

Result<std::vector<std::string>> Resolve(const std::string& name, const std::string& server) {
  const auto ask = [&](DnsType type) {
    return server.empty() ? AskMachine(name, type) : AskServer(name, type, server);
  };
  Result<DnsAnswer> four = ask(DnsType::kIPv4);
  if (!four) return four.problems();
  if (four->name_exists && four->addresses.empty()) {
    // A server that fails at this type has still answered that there is no IPv4 address.
    if (Result<DnsAnswer> six = ask(DnsType::kIPv6)) return std::move(six->addresses);
  }
  return std::move(four->addresses);
}

}  // namespace ashlar::hooks
