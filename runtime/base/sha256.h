#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ashlar {

using Sha256Digest = std::array<std::byte, 32>;

Sha256Digest Sha256(std::span<const std::byte> bytes);

// 64 lower-case hex digits.
std::string Sha256Hex(std::string_view text);

}  // namespace ashlar
