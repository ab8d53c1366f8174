// Addresses behind a name, asked of one DNS server over UDP. Only A records: pods of one model have
// few enough addresses for one datagram of 4 KiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ashlar::hooks {

// The question as bytes. Names of more than 253 bytes or with an empty or overlong label have none.
std::optional<std::string> DnsQuestion(std::string_view name, uint16_t id);

// Dotted addresses in the answer to question `id`, sorted. An answer that cannot be read, or is to
// another question, is a Problem; a name that does not exist has no addresses.
Result<std::vector<std::string>> DnsAddresses(std::string_view answer, uint16_t id);

// Asks `server` ("address:port"), or the machine's resolver when it is "". Waits two seconds at
// most with a server of its own.
Result<std::vector<std::string>> Resolve(const std::string& name, const std::string& server);

}  // namespace ashlar::hooks
