// Why a candidate row was not taken. Judging makes no text: a candidate carries its reasons as a
// set, and what they mean for it is put into words when somebody reads them.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "device/row.h"

namespace ashlar {

// In the order in which they are found and shown; the enum is the metric label, the text is for
// people.
enum class RefusalReason : uint8_t {
  kHeadSize,
  kDType,
  kKvDType,
  kBlockSize,
  kMmPrefix,
  kMla,
  kNonMla,
  kSinks,
  kSparse,
  kNonSparse,
  kHeadScales,
  kCapability,
  kKind,
  kWindow,
  kPrefixWindow,
  kNonCausal,
  kNonCausalMlaDcp,
  kBatchInvariance,
  kKvConnector,
  kPcp,
  kDcp,
  kQueryLengths,
  kCombination,
  kLayout,
  kLoadFailure,
  kOtherDevice,
  kNotBuilt,
  kLaunchProbe,
  kToolchain,
  kForbidden,
  kPlanned,
  kPluginMissing,
};
inline constexpr int kRefusalReasons = static_cast<int>(RefusalReason::kPluginMissing) + 1;

std::string_view Label(RefusalReason reason);  // "head_size"
std::string_view Text(RefusalReason reason);   // "head_size not supported"

// A set of reasons, read in their order.
class Refusals {
 public:
  constexpr Refusals() = default;
  constexpr Refusals(std::initializer_list<RefusalReason> reasons) {
    for (RefusalReason reason : reasons) Add(reason);
  }
  constexpr void Add(RefusalReason reason) { bits_ |= Bit(reason); }
  constexpr bool Has(RefusalReason reason) const { return (bits_ & Bit(reason)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return std::popcount(bits_); }
  constexpr bool operator==(const Refusals&) const = default;

  class Iterator {
   public:
    constexpr explicit Iterator(uint64_t bits) : bits_(bits) {}
    constexpr RefusalReason operator*() const {
      return static_cast<RefusalReason>(std::countr_zero(bits_));
    }
    constexpr Iterator& operator++() {
      bits_ &= bits_ - 1;
      return *this;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    uint64_t bits_;
  };
  constexpr Iterator begin() const { return Iterator(bits_); }
  constexpr Iterator end() const { return Iterator(0); }

 private:
  static_assert(kRefusalReasons <= 64);
  static constexpr uint64_t Bit(RefusalReason reason) {
    return uint64_t{1} << static_cast<int>(reason);
  }
  uint64_t bits_ = 0;
};

struct Judgement;  // select.h: the row's facts, the request and the device

struct Candidate {
  std::string row;
  std::string platform;
  int rank = 0;       // 0 is tried first
  Refusals refusals;  // empty: valid
  Verification verification = Verification::kTested;
  // What the reasons are explained from; shared by the candidates of one selection, for they are
  // read long after the rows that were judged are gone. Null: they cannot be explained.
  std::shared_ptr<const Judgement> judgement;
  std::string chosen_with = {};  // "kv.blockSize: auto": see counterfactual.h; "": none known
};

// One reason in words, for this candidate.
struct Explanation {
  std::string detail;          // "block 24: CPU_PAGED needs a multiple of 16"
  std::string counterfactual;  // the smallest change that would admit it, or ""
};
Explanation Explain(const Candidate& candidate, RefusalReason reason);

// The changes that would admit it, joined by "and"; "" when a reason has no way out, or there is
// none.
std::string ValidWith(const Candidate& candidate);

}  // namespace ashlar
