// One pod at a time may be evicted. Written only for more than one replica: with a single one it
// would keep its node from ever being drained.
#include "operator-hooks/desired.h"

namespace ashlar::hooks {

std::string BuildDisruptionBudget(const Desired& desired) {
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, "policy/v1", "PodDisruptionBudget", desired.name);
    out.Object("spec", [&] {
      out.Add("maxUnavailable", 1);
      WriteSelector(out, "selector", desired.name);
      // A pod that never became ready must not keep a node from being drained.
      out.Add("unhealthyPodEvictionPolicy", "AlwaysAllow");
    });
  });
  return out.Take();
}

}  // namespace ashlar::hooks
