// Autoscalers change `replicas` of the InferenceModel, never of the workload: only the hooks write
// that.
#include <fmt/format.h>

#include <algorithm>

#include "operator-hooks/desired.h"
#include "operator-hooks/names.h"

namespace ashlar::hooks {
namespace {

std::string_view MetricOf(const Scaling& scaling) {
  if (scaling.metric == "kv") return "vllm:kv_cache_usage_perc";
  return scaling.metric == "concurrency" ? "ashlar_requests_running" : "ashlar_requests_waiting";
}

// A scaler of either kind, whose keys for the least and the most replicas differ; `more` writes the
// rest of its spec.
template <class More>
std::string BuildScaler(const Desired& desired, std::string_view api_version, std::string_view kind,
                        std::string_view min_key, std::string_view max_key, More&& more) {
  const Scaling& scaling = *desired.wishes.scaling;
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, api_version, kind, desired.name);
    out.Object("spec", [&] {
      out.Object("scaleTargetRef", [&] {
        out.Add("apiVersion", kGroupVersion);
        out.Add("kind", "InferenceModel");
        out.Add("name", desired.name);
      });
      out.Add(min_key, scaling.min);
      out.Add(max_key, scaling.max);
      more(out, scaling);
    });
  });
  return out.Take();
}

// `kv` is given in percent and measured as a share.
std::string Target(const Scaling& scaling) {
  return scaling.metric == "kv" ? fmt::format("{}m", scaling.target * 10)
                                : std::to_string(scaling.target);
}

}  // namespace

std::string BuildAutoscaler(const Desired& desired) {
  auto rest = [](JsonWriter& out, const Scaling& scaling) {
    out.Array("metrics", [&] {
      out.Object([&] {
        out.Add("type", "Pods");
        out.Object("pods", [&] {
          out.Object("metric", [&] { out.Add("name", MetricOf(scaling)); });
          out.Object("target", [&] {
            out.Add("type", "AverageValue");
            out.Add("averageValue", Target(scaling));
          });
        });
      });
    });
    out.Object("behavior", [&] {
      out.Object("scaleDown", [&] {
        out.Add("stabilizationWindowSeconds", std::min<int64_t>(scaling.cooldown_seconds, 3600));
      });
    });
  };
  return BuildScaler(desired, "autoscaling/v2", "HorizontalPodAutoscaler", "minReplicas",
                     "maxReplicas", rest);
}

std::string BuildScaledObject(const Desired& desired) {
  auto rest = [&](JsonWriter& out, const Scaling& scaling) {
    out.Add("pollingInterval", 15);
    out.Add("cooldownPeriod", scaling.cooldown_seconds);
    // KEDA would scale a model that is still loading down to 0.
    out.Add("initialCooldownPeriod",
            std::max(scaling.cooldown_seconds, desired.wishes.load_budget_seconds));
    // A metric that is missing says nothing: keep what there is.
    out.Object("fallback", [&] {
      out.Add("failureThreshold", 3);
      out.Add("replicas", std::max<int64_t>(scaling.min, 1));
      out.Add("behavior", "currentReplicas");
    });
    out.Array("triggers", [&] {
      out.Object([&] {
        out.Add("type", "prometheus");
        out.Add("metricType", "AverageValue");
        out.Object("metadata", [&] {
          out.Add("serverAddress", desired.settings.prometheus_url);
          out.Add("query", fmt::format(R"(sum({{__name__="{}",namespace="{}",pod=~"{}-.*"}}))",
                                       MetricOf(scaling), desired.ns, desired.name));
          out.Add("threshold", scaling.metric == "kv"
                                   ? fmt::format("{}", static_cast<double>(scaling.target) / 100)
                                   : std::to_string(scaling.target));
          out.Add("ignoreNullValues", "false");
        });
      });
    });
  };
  return BuildScaler(desired, "keda.sh/v1alpha1", "ScaledObject", "minReplicaCount",
                     "maxReplicaCount", rest);
}

}  // namespace ashlar::hooks
