#include "operator-hooks/desired.h"

namespace ashlar::hooks {

std::string BuildPodMonitor(const Desired& desired) {
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, "monitoring.coreos.com/v1", "PodMonitor", desired.name);
    out.Object("spec", [&] {
      WriteSelector(out, "selector", desired.name);
      out.Array("podMetricsEndpoints", [&] {
        out.Object([&] {
          out.Add("port", "http");
          out.Add("path", "/metrics");
          out.Add("interval", "15s");
        });
      });
    });
  });
  return out.Take();
}

}  // namespace ashlar::hooks
