// Who may call the model's port, and that its pods call nobody but DNS and, while they download,
// the source.
#include "operator-hooks/desired.h"
#include "operator-hooks/names.h"

namespace ashlar::hooks {
namespace {

void WriteNamespace(JsonWriter& out, const std::string& ns) {
  if (ns.empty()) return;
  out.Object([&] {
    out.Object("namespaceSelector", [&] {
      out.Object("matchLabels", [&] { out.Add("kubernetes.io/metadata.name", ns); });
    });
  });
}

// The items of a JSON list without its brackets.
std::string_view Items(std::string_view list) {
  return list.size() < 2 ? std::string_view() : list.substr(1, list.size() - 2);
}

void WriteIngress(JsonWriter& out, const Desired& desired) {
  out.Object([&] {
    out.Array("from", [&] {
      if (std::string_view peers = Items(desired.wishes.allow_from); !peers.empty()) {
        out.RawItem(peers);
      } else {
        out.Object([&] { out.Object("podSelector", [] {}); });
      }
      WriteNamespace(out, desired.settings.monitoring_namespace);
      WriteNamespace(out, desired.settings.own_namespace);
    });
    out.Array("ports", [&] {
      out.Object([&] {
        out.Add("port", "http");
        out.Add("protocol", "TCP");
      });
    });
  });
}

void WriteDns(JsonWriter& out) {
  out.Object([&] {
    out.Array("ports", [&] {
      for (const char* protocol : {"UDP", "TCP"}) {
        out.Object([&] {
          out.Add("port", 53);
          out.Add("protocol", protocol);
        });
      }
    });
  });
}

// Ranks of one model on several nodes talk to each other; downloads go where the source is.
void WriteEgress(JsonWriter& out, const Desired& desired) {
  WriteDns(out);
  if (desired.devices.pods > 1) {
    out.Object([&] {
      out.Array("to",
                [&] { out.Object([&] { WriteSelector(out, "podSelector", desired.name); }); });
    });
  }
  const ModelSource& source = desired.wishes.source;
  if (source.downloaded() && !source.has_claim()) {
    out.Object([&] {
      out.Array("ports", [&] {
        out.Object([&] {
          out.Add("port", 443);
          out.Add("protocol", "TCP");
        });
      });
    });
  }
}

}  // namespace

std::string BuildNetworkPolicy(const Desired& desired) {
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, "networking.k8s.io/v1", "NetworkPolicy", desired.name);
    out.Object("spec", [&] {
      WriteSelector(out, "podSelector", desired.name);
      out.Array("policyTypes", [&] {
        out.Item("Ingress");
        out.Item("Egress");
      });
      out.Array("ingress", [&] { WriteIngress(out, desired); });
      out.Array("egress", [&] { WriteEgress(out, desired); });
    });
  });
  return out.Take();
}

}  // namespace ashlar::hooks
