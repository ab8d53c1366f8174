#include "operator-hooks/socket_address.h"

#include <gtest/gtest.h>

namespace ashlar::hooks {
namespace {

TEST(SocketAddress, PortsStandBehindBracketsInIPv6) {
  EXPECT_EQ(AddressAndPort("10.0.0.1", 53), "10.0.0.1:53");
  EXPECT_EQ(AddressAndPort("fd00::1", 53), "[fd00::1]:53");
  EXPECT_EQ(ReadAddressAndPort("10.0.0.1:53")->family(), AF_INET);
  EXPECT_EQ(ReadAddressAndPort("[fd00::1]:53")->family(), AF_INET6);
}

TEST(SocketAddress, RefusesWhatIsNoAddressWithAPort) {
  for (const char* text :
       {"", ":", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:5x", "a:53",
        "[]:53", "[10.0.0.1:53", "[10.0.0.1]:53", "fd00::1:53", "[fd00::1]", "[fd00::1:53"})
    EXPECT_FALSE(ReadAddressAndPort(text)) << text;
}

}  // namespace
}  // namespace ashlar::hooks
