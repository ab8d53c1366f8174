#include "operator-hooks/render.h"

#include "operator-hooks/manifest.h"
#include "operator-hooks/sync.h"
#include "plan/yaml.h"
#include "spec/spec.h"

namespace ashlar::hooks {

Result<std::string> Render(std::string_view manifest, const std::string& name,
                           const std::string& ns, const Settings& settings) {
  // First the model alone: its messages then name lines of the file.
  Result<Spec> spec = LoadSpec(manifest, name);
  if (!spec) return spec.problems();
  Result<Json> json = ManifestToJson(manifest, name);
  if (!json) return json.problems();
  JsonParser parser;
  Result<JsonElement> parent = parser.Parse(DumpJson(*json), name);
  if (!parent) return parent.problems();
  Problems problems;
  Observed observed;
  observed.model = ReadInferenceModel(*parent, name, problems);
  if (!problems.empty()) return problems;
  const ModelSource& source = observed.model.wishes.source;
  if (source.downloaded() && source.has_claim()) {
    return Problem{name + " spec.source.cache", "a download into a claim",
                   "without the operator: no cache, or pvc:// with a claim that is filled",
                   "nothing here would start the pods once the download has ended"};
  }
  if (observed.model.ns.empty()) observed.model.ns = ns;
  observed.children = NoChildren();
  // Nothing is known of the cluster: what was not asked for must not keep the rest from it.
  if (!observed.model.wishes.pod_monitor.value_or(false))
    observed.children.kinds.erase(std::string(kPodMonitors));
  Verdict verdict = Judge(observed.model, {}, settings);
  if (!verdict.accepted) return verdict.problems;
  Reconciled result = Reconcile(observed, Snapshot{}, 0, settings, nullptr);
  std::string out;
  for (const std::string& child : result.children) {
    Result<Json> object = ParseJson(child, "child");
    out += "---\n" + YamlOf(object.value());
  }
  return out;
}

}  // namespace ashlar::hooks
