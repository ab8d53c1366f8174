#include "operator-hooks/quantity.h"

#include "base/bytes.h"

namespace ashlar::hooks {
namespace {

constexpr AmountUnit kUnits[] = {
    {"", 1},
    {"Ki", int64_t{1} << 10},
    {"Mi", int64_t{1} << 20},
    {"Gi", int64_t{1} << 30},
    {"Ti", int64_t{1} << 40},
    {"k", 1'000},
    {"M", 1'000'000},
    {"G", 1'000'000'000},
    {"T", 1'000'000'000'000},
};
constexpr AmountUnit kThousandths[] = {{"m", 1}};

}  // namespace

std::optional<int64_t> ParseQuantity(std::string_view text) {
  if (std::optional<int64_t> thousandths = ParseAmount(text, kThousandths))
    return *thousandths / 1000;
  return ParseAmount(text, kUnits);
}

}  // namespace ashlar::hooks
