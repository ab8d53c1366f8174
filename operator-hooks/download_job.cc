// Fills the model's claim once, before the first pod starts. A Job cannot be changed, so each other
// download has another name.
#include "operator-hooks/desired.h"
#include "operator-hooks/names.h"
#include "operator-hooks/pod_parts.h"

namespace ashlar::hooks {

std::string BuildDownloadJob(const Desired& desired) {
  const std::string& claim = desired.wishes.source.cache.claim_name;
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, "batch/v1", "Job", DownloadNameOf(desired));
    out.Object("spec", [&] {
      out.Add("backoffLimit", 6);
      out.Object("template", [&] {
        out.Object("metadata", [&] {
          out.Object("labels", [&] { out.Add("app.kubernetes.io/instance", desired.name); });
        });
        out.Object("spec", [&] {
          out.Add("restartPolicy", "OnFailure");
          out.Add("enableServiceLinks", false);
          out.Add("automountServiceAccountToken", false);
          WritePodSecurity(out, desired);
          out.Raw("imagePullSecrets", desired.wishes.pod.image_pull_secrets);
          out.Raw("tolerations", desired.wishes.pod.tolerations);
          out.Array("containers", [&] { WriteDownloader(out, desired); });
          out.Array("volumes", [&] {
            out.Object([&] {
              out.Add("name", "models");
              out.Object("persistentVolumeClaim", [&] {
                out.Add("claimName", claim.empty() ? ClaimName(desired.name) : claim);
              });
            });
            out.Object([&] {
              out.Add("name", "tmp");
              out.Object("emptyDir", [] {});
            });
          });
        });
      });
    });
  });
  return out.Take();
}

std::string DownloadNameOf(const Desired& desired) {
  const ModelSource& source = desired.wishes.source;
  return DownloadName(desired.name,
                      source.uri + '\n' + source.secret + '\n' + desired.settings.download_image);
}

}  // namespace ashlar::hooks
