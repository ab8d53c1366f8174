#include "operator-hooks/quantity.h"

#include <string>

#include "base/bytes.h"

namespace ashlar::hooks {

std::optional<int64_t> ParseQuantity(std::string_view text) {
  constexpr AmountUnit kThousandths[] = {{"m", 1}};
  if (std::optional<int64_t> amount = ParseAmount(text, kThousandths)) return *amount / 1000;
  // The same units as of byte amounts, but for the B and the small k: 12Gi, 12G, 12k.
  if (text.ends_with('K')) return std::nullopt;
  std::string bytes(text);
  if (bytes.ends_with('k')) bytes.back() = 'K';
  return ParseBytes(bytes + "B");
}

}  // namespace ashlar::hooks
