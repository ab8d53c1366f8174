// The files of a pod: its document, scratch space, shared memory and the model.
#include <fmt/format.h>

#include <algorithm>

#include "operator-hooks/names.h"
#include "operator-hooks/pod_parts.h"

namespace ashlar::hooks {
namespace {

void WriteMount(JsonWriter& out, std::string_view name, std::string_view path, bool read_only,
                std::string_view sub_path = "") {
  out.Object([&] {
    out.Add("name", name);
    out.Add("mountPath", path);
    if (read_only) out.Add("readOnly", true);
    out.AddIf("subPath", sub_path);
  });
}

// "pvc://claim/some/path" -> {"claim", "some/path"}
std::pair<std::string, std::string> ClaimAndPath(const std::string& uri) {
  std::string rest = uri.substr(6);
  size_t slash = rest.find('/');
  if (slash == rest.npos) return {rest, ""};
  return {rest.substr(0, slash), rest.substr(slash + 1)};
}

bool MountsModels(const ModelSource& source) {
  return source.present() && !source.uri.starts_with("file://");
}

void WriteClaimVolume(JsonWriter& out, const std::string& claim, bool read_only) {
  out.Object("persistentVolumeClaim", [&] {
    out.Add("claimName", claim);
    if (read_only) out.Add("readOnly", true);
  });
}

void WriteModels(JsonWriter& out, const Desired& desired) {
  const ModelSource& source = desired.wishes.source;
  out.Object([&] {
    out.Add("name", "models");
    if (source.uri.starts_with("pvc://")) {
      WriteClaimVolume(out, ClaimAndPath(source.uri).first, true);
    } else if (!source.image.empty()) {
      out.Object("image", [&] {
        out.Add("reference", source.image);
        out.AddIf("pullPolicy", source.image_pull_policy);
      });
    } else if (source.has_claim()) {
      const std::string& claim = source.cache.claim_name;
      WriteClaimVolume(out, claim.empty() ? ClaimName(desired.name) : claim, true);
    } else {
      out.Object("emptyDir", [] {});
    }
  });
}

}  // namespace

void WriteMounts(JsonWriter& out, const Desired& desired) {
  const ModelSource& source = desired.wishes.source;
  out.Array("volumeMounts", [&] {
    WriteMount(out, "config", "/etc/ashlar", true);
    WriteMount(out, "tmp", "/tmp", false);
    WriteMount(out, "shm", "/dev/shm", false);
    if (MountsModels(source)) {
      bool claim = source.uri.starts_with("pvc://");
      WriteMount(out, "models", "/models", true, claim ? ClaimAndPath(source.uri).second : "");
    }
    const auto& extra = desired.wishes.pod.extra_volumes;
    for (size_t i = 0; i < extra.size(); ++i)
      WriteMount(out, fmt::format("extra-{}", i), extra[i].mount_path, extra[i].read_only);
  });
}

void WriteVolumes(JsonWriter& out, const Desired& desired) {
  const PodSettings& pod = desired.wishes.pod;
  out.Array("volumes", [&] {
    out.Object([&] {
      out.Add("name", "config");
      out.Object("configMap",
                 [&] { out.Add("name", ConfigMapName(desired.name, desired.spec.digest)); });
    });
    out.Object([&] {
      out.Add("name", "tmp");
      out.Object("emptyDir", [] {});
    });
    out.Object([&] {
      out.Add("name", "shm");
      out.Object("emptyDir", [&] {
        out.Add("medium", "Memory");
        int64_t mib = std::max<int64_t>(1024, 256 * desired.devices.per_pod);
        out.Add("sizeLimit", pod.shm_size.empty() ? fmt::format("{}Mi", mib) : pod.shm_size);
      });
    });
    if (MountsModels(desired.wishes.source)) WriteModels(out, desired);
    for (size_t i = 0; i < pod.extra_volumes.size(); ++i) {
      std::string_view members = pod.extra_volumes[i].volume;
      out.Object([&] {
        out.Add("name", fmt::format("extra-{}", i));
        if (members.size() > 2) out.RawMembers(members.substr(1, members.size() - 2));
      });
    }
  });
}

void WriteDownloader(JsonWriter& out, const Desired& desired) {
  const ModelSource& source = desired.wishes.source;
  out.Object([&] {
    out.Add("name", "download");
    out.Add("image", desired.settings.download_image);
    out.Array("args", [&] {
      out.Item(source.uri);
      out.Item("/models");
    });
    if (!source.secret.empty()) {
      out.Array("envFrom", [&] {
        out.Object([&] { out.Object("secretRef", [&] { out.Add("name", source.secret); }); });
      });
    }
    out.Object("resources", [&] {
      out.Object("requests", [&] {
        out.Add("cpu", "1");
        out.Add("memory", "1Gi");
      });
    });
    WriteContainerSecurity(out, true);
    out.Array("volumeMounts", [&] {
      WriteMount(out, "models", "/models", false);
      WriteMount(out, "tmp", "/tmp", false);
    });
  });
}

}  // namespace ashlar::hooks
