// Where a socket connects to: a numeric address of either IP version, with a port.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

namespace ashlar::hooks {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// nullopt when `address` is neither dotted (10.0.0.1) nor with colons (fd00::1).
std::optional<SocketAddress> MakeSocketAddress(const std::string& address, uint16_t port);

// "10.0.0.1:8000", "[fd00::1]:8000".
std::string AddressAndPort(const std::string& address, int port);

// The reverse; nullopt also when the port is none, or when brackets stand around an IPv4 address or
// not around an IPv6 address, whose last part could be the port.
std::optional<SocketAddress> ReadAddressAndPort(const std::string& text);

}  // namespace ashlar::hooks
