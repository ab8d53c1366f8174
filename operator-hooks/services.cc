#include "operator-hooks/desired.h"
#include "operator-hooks/names.h"

namespace ashlar::hooks {
namespace {

template <class More>
std::string Build(const Desired& desired, const std::string& name, int port, More&& more) {
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, "v1", "Service", name);
    out.Object("spec", [&] {
      more(out);
      out.Object("selector", [&] {
        out.Add(kModelLabel, desired.name);
        if (desired.wishes.leader_worker_set) out.Add(kWorkerIndexLabel, "0");
      });
      out.Array("ports", [&] {
        out.Object([&] {
          out.Add("name", "http");
          out.Add("port", port);
          out.Add("targetPort", "http");
          out.Add("protocol", "TCP");
        });
      });
    });
  });
  return out.Take();
}

}  // namespace

// What clients call: ready pods only.
std::string BuildService(const Desired& desired) {
  return Build(desired, desired.name, desired.spec.server.port,
               [](JsonWriter& out) { out.Add("type", "ClusterIP"); });
}

// All pods by address, ready or not: where the hooks ask each for its /status.
std::string BuildPodsService(const Desired& desired) {
  return Build(desired, PodsServiceName(desired.name), kPodPort, [](JsonWriter& out) {
    out.Add("clusterIP", "None");
    out.Add("publishNotReadyAddresses", true);
  });
}

}  // namespace ashlar::hooks
