// Where a pod may run.
#include "operator-hooks/pod_parts.h"

namespace ashlar::hooks {
namespace {

constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

std::string_view ProductLabel(const std::string& vendor) {
  return vendor == "amd" ? "amd.com/gpu.product-name" : "nvidia.com/gpu.product";
}

}  // namespace

// Products and memory as terms of node affinity.
void WriteAffinity(JsonWriter& out, const Desired& desired) {
  const Accelerator& accelerator = desired.wishes.accelerator;
  if (accelerator.products.empty() && accelerator.min_memory_gib == 0) {
    out.Raw("affinity", desired.wishes.pod.affinity);
    return;
  }
  out.Object("affinity", [&] {
    out.Object("nodeAffinity", [&] {
      out.Object("requiredDuringSchedulingIgnoredDuringExecution", [&] {
        out.Array("nodeSelectorTerms", [&] {
          out.Object([&] {
            out.Array("matchExpressions", [&] {
              if (!accelerator.products.empty()) {
                out.Object([&] {
                  out.Add("key", ProductLabel(desired.devices.vendor));
                  out.Add("operator", "In");
                  out.Array("values", [&] {
                    for (const std::string& product : accelerator.products) out.Item(product);
                  });
                });
              }
              if (accelerator.min_memory_gib > 0) {
                out.Object([&] {
                  out.Add("key", "nvidia.com/gpu.memory");
                  out.Add("operator", "Gt");
                  out.Array("values", [&] {
                    out.Item(std::to_string(accelerator.min_memory_gib * 1024 - 1));
                  });
                });
              }
            });
          });
        });
      });
    });
  });
}

void WriteSpread(JsonWriter& out, const Desired& desired) {
  if (!desired.wishes.pod.topology_spread.empty()) {
    out.Raw("topologySpreadConstraints", desired.wishes.pod.topology_spread);
    return;
  }
  out.Array("topologySpreadConstraints", [&] {
    out.Object([&] {
      out.Add("maxSkew", 1);
      out.Add("topologyKey", kHostnameLabel);
      out.Add("whenUnsatisfiable", "ScheduleAnyway");
      WriteSelector(out, "labelSelector", desired.name);
    });
  });
}

void WriteDeviceClaims(JsonWriter& out, const Desired& desired) {
  const Accelerator::Claim& claim = desired.wishes.accelerator.claim;
  if (!claim.present()) return;
  out.Array("resourceClaims", [&] {
    out.Object([&] {
      out.Add("name", "devices");
      out.Add("resourceClaimTemplateName",
              claim.template_name.empty() ? ClaimTemplateNameOf(desired) : claim.template_name);
    });
  });
}

}  // namespace ashlar::hooks
