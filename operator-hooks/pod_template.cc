#include "operator-hooks/pod_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sha256.h"
#include "operator-hooks/names.h"
#include "operator-hooks/pod_parts.h"

namespace ashlar::hooks {
namespace {

struct Probe {
  std::string_view key, path;
  int period, failures, timeout;
};
// The start probe only asks whether the process answers: a model that is refused explains itself at
// /status and must not be killed for it, and a slow load is no failure. /livez fails when the
// engine is dead.
constexpr Probe kProbes[] = {{"startupProbe", "/livez", 5, 24, 1},
                             {"readinessProbe", "/readyz", 2, 3, 1},
                             {"livenessProbe", "/livez", 10, 6, 5}};

void WriteProbes(JsonWriter& out) {
  for (const Probe& probe : kProbes) {
    out.Object(probe.key, [&] {
      out.Object("httpGet", [&] {
        out.Add("path", probe.path);
        out.Add("port", "http");
      });
      out.Add("periodSeconds", probe.period);
      out.Add("failureThreshold", probe.failures);
      out.Add("timeoutSeconds", probe.timeout);
    });
  }
}

std::string ImageOf(const Desired& desired) {
  if (!desired.wishes.image.empty()) return desired.wishes.image;
  if (desired.devices.vendor == "nvidia") return desired.settings.image_nvidia;
  return desired.devices.vendor == "amd" ? desired.settings.image_amd : desired.settings.image_cpu;
}

void WriteResources(JsonWriter& out, const Desired& desired) {
  const PodSettings& pod = desired.wishes.pod;
  std::map<std::string, std::string> requests = pod.requests, limits = pod.limits;
  requests.emplace("cpu", std::to_string(2 + desired.devices.per_pod));
  requests.emplace("memory", "4Gi");
  if (!desired.devices.resource.empty())
    limits[desired.devices.resource] = std::to_string(desired.devices.per_pod);
  // A request above its limit is refused by the API server.
  for (const auto& [resource, limit] : limits) {
    if (!pod.requests.contains(resource)) requests[resource] = limit;
  }
  out.Object("resources", [&] {
    out.Object("requests", [&] { WriteTextMap(out, requests); });
    if (!limits.empty()) out.Object("limits", [&] { WriteTextMap(out, limits); });
    if (!desired.wishes.accelerator.claim.present()) return;
    out.Array("claims", [&] { out.Object([&] { out.Add("name", "devices"); }); });
  });
}

void WriteContainer(JsonWriter& out, const Desired& desired) {
  out.Object([&] {
    out.Add("name", kContainer);
    out.Add("image", ImageOf(desired));
    out.Array("args", [&] {
      for (std::string_view word : {"serve", "-f", "/etc/ashlar/model.yaml", "--port"})
        out.Item(word);
      // Also a document that cannot be read is answered for where probes ask.
      out.Item(std::to_string(kPodPort));
    });
    out.Raw("env", desired.wishes.pod.env);
    out.Array("ports", [&] {
      out.Object([&] {
        out.Add("name", "http");
        out.Add("containerPort", kPodPort);
        out.Add("protocol", "TCP");
      });
    });
    WriteProbes(out);
    if (desired.wishes.pre_stop_seconds > 0) {
      out.Object("lifecycle", [&] {
        out.Object("preStop", [&] {
          out.Object("sleep", [&] { out.Add("seconds", desired.wishes.pre_stop_seconds); });
        });
      });
    }
    WriteResources(out, desired);
    WriteContainerSecurity(out, desired.wishes.pod.read_only_root);
    WriteMounts(out, desired);
  });
}

void WritePodSpec(JsonWriter& out, const Desired& desired) {
  const PodSettings& pod = desired.wishes.pod;
  const ModelSource& source = desired.wishes.source;
  out.Object([&] {
    // A Service named like the program would put ASHLAR_PORT into the environment.
    out.Add("enableServiceLinks", false);
    out.Add("automountServiceAccountToken", false);
    out.AddIf("serviceAccountName", pod.service_account);
    out.Add("terminationGracePeriodSeconds", GraceSeconds(desired));
    WritePodSecurity(out, desired);
    out.Raw("imagePullSecrets", pod.image_pull_secrets);
    out.AddIf("priorityClassName", pod.priority_class);
    out.AddIf("runtimeClassName", pod.runtime_class);
    out.AddIf("schedulerName", pod.scheduler);
    if (!pod.node_selector.empty())
      out.Object("nodeSelector", [&] { WriteTextMap(out, pod.node_selector); });
    out.Raw("tolerations", pod.tolerations);
    WriteAffinity(out, desired);
    WriteSpread(out, desired);
    WriteDeviceClaims(out, desired);
    if (source.downloaded() && !source.has_claim())
      out.Array("initContainers", [&] { WriteDownloader(out, desired); });
    out.Array("containers", [&] { WriteContainer(out, desired); });
    WriteVolumes(out, desired);
  });
}

void WriteRouterLabels(JsonWriter& out, const Wishes::Router& router) {
  if (!router.enabled) return;
  out.Add("llm-d.ai/inference-serving", "true");
  out.Add("llm-d.ai/engine-type", router.engine_type);
  out.AddIf("llm-d.ai/role", router.role);
  out.AddIf(kPoolLabel, router.pool);
}

}  // namespace

int64_t GraceSeconds(const Desired& desired) {
  const Spec::Server& server = desired.spec.server;
  return desired.wishes.pre_stop_seconds + server.lame_duck_seconds +
         std::max<int64_t>(desired.wishes.drain_seconds.value_or(0), server.drain_seconds);
}

void WritePodSecurity(JsonWriter& out, const Desired& desired) {
  const PodSettings& pod = desired.wishes.pod;
  std::vector<int64_t> groups = pod.supplemental_groups;
  if (groups.empty() && desired.devices.vendor == "amd") groups = desired.settings.device_groups;
  out.Object("securityContext", [&] {
    out.Add("runAsNonRoot", true);
    out.Add("runAsUser", pod.run_as_user);
    out.Add("runAsGroup", pod.run_as_user);
    out.Add("fsGroup", pod.run_as_user);
    // A volume of many weights is not walked through at each start.
    out.Add("fsGroupChangePolicy", "OnRootMismatch");
    if (!groups.empty()) {
      out.Array("supplementalGroups", [&] {
        for (int64_t group : groups) out.Item(group);
      });
    }
    out.Object("seccompProfile", [&] { out.Add("type", "RuntimeDefault"); });
  });
}

void WriteContainerSecurity(JsonWriter& out, bool read_only_root) {
  out.Object("securityContext", [&] {
    out.Add("allowPrivilegeEscalation", false);
    out.Add("readOnlyRootFilesystem", read_only_root);
    out.Object("capabilities", [&] { out.Array("drop", [&] { out.Item("ALL"); }); });
  });
}

PodTemplate BuildPodTemplate(const Desired& desired, bool routed) {
  JsonWriter metadata;
  metadata.Object([&] {
    metadata.Object("labels", [&] {
      WriteLabels(metadata, desired.name);
      if (routed) WriteRouterLabels(metadata, desired.wishes.router);
      WriteTextMap(metadata, desired.wishes.pod.labels);
    });
    metadata.Object("annotations", [&] {
      metadata.Add(kDigestKey, desired.spec.digest);
      WriteTextMap(metadata, desired.wishes.pod.annotations);
    });
  });
  JsonWriter spec;
  WritePodSpec(spec, desired);
  PodTemplate pod;
  pod.id = Sha256Hex(metadata.text() + spec.text()).substr(0, 8);
  JsonWriter out;
  out.Object([&] {
    out.Raw("metadata", metadata.text());
    out.Object("spec", [&] {
      out.Add("hostname", PodHostname(desired.name, pod.id));
      out.RawMembers(std::string_view(spec.text()).substr(1, spec.text().size() - 2));
    });
  });
  pod.text = out.Take();
  return pod;
}

}  // namespace ashlar::hooks
