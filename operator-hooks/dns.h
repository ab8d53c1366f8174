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

// Addresses of both types in the answer to question `id`, as text, sorted. An answer that cannot be
// read, or is to another question, is a Problem; a name that does not exist has no addresses.
Result<std::vector<std::string>> DnsAddresses(std::string_view answer, uint16_t id);

// Asks `server` ("address:port", "[address]:port"), or the machine's resolver when it is "". Waits
// two seconds at most for an answer of a server of its own.
Result<std::vector<std::string>> Resolve(const std::string& name, const std::string& server);

}  // namespace ashlar::hooks
