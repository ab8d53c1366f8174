// Addresses behind a name, asked of one DNS server over UDP: pods of one model have few enough for
// one datagram of 4 KiB. IPv6 counts where there is no IPv4, so a pod that has both is found once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ashlar::hooks {

enum class DnsType : uint16_t { kIPv4 = 1, kIPv6 = 28 };  // records A and AAAA

// The question as bytes. Names of more than 253 bytes or with an empty or overlong label have none.
std::optional<std::string> DnsQuestion(std::string_view name, uint16_t id, DnsType type);

struct DnsAnswer {
  bool name_exists = true;             // perhaps with addresses of another type
  std::vector<std::string> addresses;  // as text, sorted
};

// Addresses of both types in the answer to question `id`. An answer that cannot be read, or is to
// another question, is a Problem.
Result<DnsAnswer> ReadDnsAnswer(std::string_view answer, uint16_t id);

// Asks `server` ("address:port", "[address]:port"), or the machine's resolver when it is "", for
// IPv4 addresses, and for IPv6 addresses of a name that has none. Waits two seconds at most for
// each answer of a server of its own. No IPv4 address and no answer about IPv6: no addresses.
Result<std::vector<std::string>> Resolve(const std::string& name, const std::string& server);

}  // namespace ashlar::hooks
