#include "operator-hooks/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace ashlar::hooks {

std::optional<SocketAddress> MakeSocketAddress(const std::string& address, uint16_t port) {
  SocketAddress made;
  if (auto& four = reinterpret_cast<sockaddr_in&>(made.storage);
      inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    made.size = sizeof four;
    return made;
  }
  if (auto& six = reinterpret_cast<sockaddr_in6&>(made.storage);
      inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    made.size = sizeof six;
    return made;
  }
  return std::nullopt;
}

std::string AddressAndPort(const std::string& address, int port) {
  const bool six = address.find(':') != address.npos;
  return six ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

std::optional<SocketAddress> ReadAddressAndPort(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data() + colon + 1, end, port).ptr != end || port == 0) {
    return std::nullopt;
  }
  std::string address = text.substr(0, colon);
  const bool six = address.find(':') != address.npos;
  const bool brackets = address.starts_with('[') && address.ends_with(']');
  if (six != brackets) return std::nullopt;
  if (brackets) address = address.substr(1, address.size() - 2);
  return MakeSocketAddress(address, port);
}

}  // namespace ashlar::hooks
