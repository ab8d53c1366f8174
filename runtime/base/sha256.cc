#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace ashlar {

Sha256Digest Sha256(std::span<const std::byte> bytes) {
  Sha256Digest digest;
  unsigned int size = 0;
  int ok = EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                      &size, EVP_sha256(), nullptr);
  Check(ok == 1 && size == digest.size(), "OpenSSL computes SHA-256");
  return digest;
}

std::string Sha256Hex(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (std::byte byte : Sha256(std::as_bytes(std::span(text.data(), text.size())))) {
    hex += kDigits[std::to_integer<int>(byte) >> 4];
    hex += kDigits[std::to_integer<int>(byte) & 15];
  }
  return hex;
}

}  // namespace ashlar
