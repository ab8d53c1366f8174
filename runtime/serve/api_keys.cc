#include "serve/api_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/mapped_file.h"

namespace ashlar {
namespace {

constexpr int64_t kFileBytes = 1 << 20;
constexpr std::array<std::string_view, 5> kOpenPaths = {"/livez", "/readyz", "/health", "/metrics",
                                                        "/status"};

Sha256Digest Digest(std::string_view text) { return Sha256(std::as_bytes(std::span(text))); }

}  // namespace

Result<ApiKeys> ApiKeys::Load(const std::string& path) {
  Result<std::string> text = ReadTextFile(path, kFileBytes);
  if (!text) return text.problems();
  ApiKeys keys;
  std::string_view rest = *text;
  for (int number = 1; !rest.empty(); ++number) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (!std::all_of(line.begin(), line.end(), [](char c) { return c > ' ' && c < 0x7f; })) {
      return Problem{fmt::format("{}:{}", path, number),
                     "a key with a space, a control character or a byte beyond ASCII",
                     "one key a line in printable ASCII", "write each key on a line of its own"};
    }
    keys.digests_.push_back(Digest(line));
  }
  if (keys.digests_.empty()) {
    return Problem{path, "no key in the file", "one key a line",
                   "add a key, or remove server.apiKeyFile to serve without"};
  }
  return keys;
}

bool ApiKeys::Admits(std::string_view authorization) const {
  if (digests_.empty()) return true;
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size() ||
      !std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                  [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); })) {
    return false;
  }
  Sha256Digest given = Digest(authorization.substr(kScheme.size()));
  // Every key and every byte is looked at, whatever matches.
  int admitted = 0;
  for (const Sha256Digest& digest : digests_) {
    unsigned difference = 0;
    for (size_t i = 0; i < digest.size(); ++i) {
      difference |= std::to_integer<unsigned>(digest[i] ^ given[i]);
    }
    admitted |= difference == 0 ? 1 : 0;
  }
  return admitted != 0;
}

bool ApiKeys::Guards(std::string_view path) {
  return std::find(kOpenPaths.begin(), kOpenPaths.end(), path) == kOpenPaths.end();
}

}  // namespace ashlar
