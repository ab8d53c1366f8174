// Why a candidate row was not taken.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/row.h"

namespace ashlar {

// Why a candidate was refused; the enum is the metric label, the text is for people.
enum class RefusalReason {
  kHeadSize,
  kDType,
  kKvDType,
  kBlockSize,
  kMla,
  kNonMla,
  kSinks,
  kCapability,
  kKind,
  kWindow,
  kNonCausal,
  kBatchInvariance,
  kKvConnector,
  kLayout,
  kOtherDevice,
  kNotBuilt,
  kForbidden,
  kPlanned,
  kPluginMissing,
};
std::string_view Label(RefusalReason reason);  // "head_size"
std::string_view Text(RefusalReason reason);   // "head_size not supported"

struct Refusal {
  RefusalReason reason;
  std::string detail;          // "block 24: CPU_PAGED needs a multiple of 16"
  std::string counterfactual;  // the smallest change that would admit it, or ""
};

struct Candidate {
  std::string row;
  std::string platform;
  int rank = 0;                   // 0 is tried first
  std::vector<Refusal> refusals;  // empty: valid
  Verification verification = Verification::kTested;
};

}  // namespace ashlar
