// The model document as the runtime reads it. Immutable and named by its digest: a pod that starts
// again reads what it read before, however the model has changed since.
#include "operator-hooks/desired.h"
#include "operator-hooks/names.h"
#include "plan/yaml.h"

namespace ashlar::hooks {

std::string BuildConfigMap(const std::string& name, const std::string& ns,
                           const std::string& digest, const std::string& document) {
  JsonWriter out;
  out.Object([&] {
    out.Add("apiVersion", "v1");
    out.Add("kind", "ConfigMap");
    out.Object("metadata", [&] {
      out.Add("name", ConfigMapName(name, digest));
      out.AddIf("namespace", ns);
      out.Object("labels", [&] { WriteLabels(out, name); });
      out.Object("annotations", [&] { out.Add(kDigestKey, digest); });
    });
    out.Add("immutable", true);
    out.Object("data", [&] { out.Add(kDocumentFile, document); });
  });
  return out.Take();
}

std::string BuildConfigMap(const Desired& desired) {
  // Sorted keys without defaults: what the digest is taken over, in a form that people can read.
  Result<Json> document = ParseJson(desired.spec.document, "spec.model");
  return BuildConfigMap(desired.name, desired.ns, desired.spec.digest, YamlOf(document.value()));
}

}  // namespace ashlar::hooks
