// The Deployment, or for a model on several nodes the LeaderWorkerSet.
#include <fmt/format.h>

#include <algorithm>

#include "operator-hooks/desired.h"
#include "operator-hooks/names.h"
#include "operator-hooks/pod_template.h"

namespace ashlar::hooks {
namespace {

// Time for the hooks to see what a new pod has planned before the next one follows.
constexpr int64_t kLookSeconds = 10;
// Beyond loading: pulling the image, scheduling.
constexpr int64_t kBeforeLoadSeconds = 300;

void WriteAnnotations(JsonWriter& out, const Desired& desired, const PodTemplate& pod) {
  out.Object("annotations", [&] {
    out.Add(kDigestKey, desired.spec.digest);
    out.Add(kTemplateKey, pod.id);
    // What the children are made from while a later spec is refused.
    out.Add(kWishesKey, desired.wishes_text);
  });
}

// Devices are scarce: without a spare one a surge pod would wait for ever.
struct Rolling {
  int64_t surge, unavailable;
};
Rolling RollingOf(const Desired& desired) {
  const Wishes& wishes = desired.wishes;
  bool scarce = desired.devices.per_pod > 0;
  Rolling rolling{wishes.max_surge.value_or(scarce ? 0 : 1),
                  wishes.max_unavailable.value_or(scarce ? 1 : 0)};
  // One of the two given as 0 leaves the other to carry the rollout.
  if (rolling.surge == 0 && rolling.unavailable == 0)
    (wishes.max_surge ? rolling.unavailable : rolling.surge) = 1;
  return rolling;
}

void WriteRolling(JsonWriter& out, const Desired& desired) {
  Rolling rolling = RollingOf(desired);
  out.Add("maxSurge", rolling.surge);
  out.Add("maxUnavailable", rolling.unavailable);
}

int64_t MinReadySeconds(const Desired& desired) {
  const bool both =
      desired.replicas > 1 || RollingOf(desired).surge > 0;  // old pods beside new ones
  const bool looks = both && !desired.wishes.allow_plan_change;
  return std::max(desired.wishes.min_ready_seconds, looks ? kLookSeconds : 0);
}

int64_t DeadlineSeconds(const Desired& desired) {
  const Wishes& wishes = desired.wishes;
  if (wishes.progress_deadline_seconds > 0) return wishes.progress_deadline_seconds;
  return wishes.load_budget_seconds + kBeforeLoadSeconds;
}

}  // namespace

std::string BuildDeployment(const Desired& desired) {
  PodTemplate pod = BuildPodTemplate(desired);
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, "apps/v1", "Deployment", desired.name,
              [&] { WriteAnnotations(out, desired, pod); });
    out.Object("spec", [&] {
      out.Add("replicas", desired.replicas);
      out.Add("paused", desired.paused);
      out.Add("minReadySeconds", MinReadySeconds(desired));
      out.Add("progressDeadlineSeconds", DeadlineSeconds(desired));
      out.Add("revisionHistoryLimit", 3);
      out.Object("strategy", [&] {
        out.Add("type", "RollingUpdate");
        out.Object("rollingUpdate", [&] { WriteRolling(out, desired); });
      });
      WriteSelector(out, "selector", desired.name);
      out.Raw("template", pod.text);
    });
  });
  return out.Take();
}

std::string BuildLeaderWorkerSet(const Desired& desired) {
  PodTemplate leader = BuildPodTemplate(desired), worker = BuildPodTemplate(desired, false);
  JsonWriter out;
  out.Object([&] {
    WriteHead(out, desired, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", desired.name,
              [&] { WriteAnnotations(out, desired, leader); });
    out.Object("spec", [&] {
      out.Add("replicas", desired.replicas);
      out.Add("startupPolicy", "LeaderCreated");
      out.Object("rolloutStrategy", [&] {
        out.Add("type", "RollingUpdate");
        out.Object("rollingUpdateConfiguration", [&] {
          WriteRolling(out, desired);
          // Its way to stand still: no group from this number on is replaced.
          if (desired.paused) out.Add("partition", desired.replicas);
        });
      });
      out.Object("leaderWorkerTemplate", [&] {
        out.Add("size", desired.devices.pods);
        out.Add("restartPolicy", "RecreateGroupOnPodRestart");
        out.Raw("leaderTemplate", leader.text);
        out.Raw("workerTemplate", worker.text);
      });
    });
  });
  return out.Take();
}

}  // namespace ashlar::hooks
