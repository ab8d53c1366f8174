#include "base/sha256.h"

#include <openssl/evp.h>

#include <memory>

#include "base/check.h"

namespace ashlar {

Sha256Digest Sha256(std::span<const std::byte> bytes) {
  // Looked up and allocated once: that costs more than the hash of a block of tokens does.
  static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
      EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  Sha256Digest digest;
  unsigned int size = 0;
  const bool ok = EVP_DigestInit_ex2(context.get(), algorithm, nullptr) == 1 &&
                  EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1 &&
                  EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()),
                                     &size) == 1;
  Check(ok && size == digest.size(), "OpenSSL computes SHA-256");
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
