// What the pods of a model say of themselves at /status.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operator-hooks/json_reader.h"

namespace ashlar::hooks {

struct PodCheck {
  std::string name, state;  // pending, passed or failed
  std::string condition, reason, message;
};

struct PodGroup {
  struct Rejected {
    std::string backend;
    std::vector<std::string> reasons;
  };
  int64_t index = 0, layers = 0, block_tokens = 0, kernel_block_tokens = 0, blocks = 0, bytes = 0;
  std::string name, kind, dtype, requested, backend, reason;
  std::vector<Rejected> rejected;
};

struct PodStatus {
  std::string address;
  std::string hostname;  // says which pod template it is of
  std::string digest, phase;
  bool ready = false;
  std::vector<PodCheck> checks;
  std::string platform, product, layout;  // "" before there is a plan
  std::vector<PodGroup> groups;

  const PodCheck* Check(std::string_view name) const;
};

// Enough to see what a model's pods decided; each more costs a connection every round.
inline constexpr size_t kPolledPods = 64;

// The pods of one model as they last answered, at most kPolledPods. Pods that do not answer are not
// in it.
struct Snapshot {
  bool polled = false;  // at least once
  std::vector<PodStatus> pods;
};

// `value` is what a pod answered, which may be anything.
PodStatus ReadPodStatus(JsonElement value, const std::string& address, Problems& problems);

// What a plan change is measured by, one line a group: "full_attention: CPU_PAGED, block 16,
// LBHNC".
std::string PlanLine(std::string_view group, std::string_view backend, int64_t block_tokens,
                     std::string_view layout);
std::vector<std::string> PlanLines(const PodStatus& pod);

}  // namespace ashlar::hooks
