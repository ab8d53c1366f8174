// What a model claims for itself: a volume for its files, devices by dynamic resource allocation.
#include "operator-hooks/desired.h"
#include "operator-hooks/names.h"

namespace ashlar::hooks {
namespace {

void WriteRequest(JsonWriter& out, const DeviceRequest& request, int64_t count) {
  out.Add("deviceClassName", request.device_class);
  out.Add("allocationMode", "ExactCount");
  out.Add("count", count);
  if (request.selectors.empty()) return;
  out.Array("selectors", [&] {
    for (const std::string& expression : request.selectors) {
      out.Object([&] { out.Object("cel", [&] { out.Add("expression", expression); }); });
    }
  });
}

std::string DevicesText(const Desired& desired) {
  const Accelerator::Claim& claim = desired.wishes.accelerator.claim;
  JsonWriter out;
  out.Object([&] {
    out.Array("requests", [&] {
      out.Object([&] {
        out.Add("name", "devices");
        if (claim.exact) {
          out.Object("exactly", [&] { WriteRequest(out, *claim.exact, desired.devices.per_pod); });
          return;
        }
        out.Array("firstAvailable", [&] {
          for (size_t i = 0; i < claim.first_available.size(); ++i) {
            out.Object([&] {
              out.Add("name", "choice-" + std::to_string(i));
              WriteRequest(out, claim.first_available[i], desired.devices.per_pod);
            });
          }
        });
      });
    });
  });
  return out.Take();
}

}  // namespace

std::string BuildClaim(const Desired& desired) {
  const ModelSource::Cache& cache = desired.wishes.source.cache;
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, "v1", "PersistentVolumeClaim", ClaimName(desired.name));
    out.Object("spec", [&] {
      out.Array("accessModes", [&] {
        for (const std::string& mode : cache.access_modes) out.Item(mode);
      });
      out.AddIf("storageClassName", cache.storage_class);
      out.Object("resources",
                 [&] { out.Object("requests", [&] { out.Add("storage", cache.size); }); });
    });
  });
  return out.Take();
}

std::string ClaimTemplateNameOf(const Desired& desired) {
  return ClaimTemplateName(desired.name, DevicesText(desired));
}

std::string BuildClaimTemplate(const Desired& desired) {
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, "resource.k8s.io/v1", "ResourceClaimTemplate",
              ClaimTemplateNameOf(desired));
    out.Object("spec",
               [&] { out.Object("spec", [&] { out.Raw("devices", DevicesText(desired)); }); });
  });
  return out.Take();
}

}  // namespace ashlar::hooks
