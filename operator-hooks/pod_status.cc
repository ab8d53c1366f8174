#include "operator-hooks/pod_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "operator-hooks/condition.h"

namespace ashlar::hooks {
namespace {

// Keeps the status of a resource small, whatever a pod answers.
constexpr size_t kMaxGroups = 16, kMaxRejected = 8, kMaxReasons = 4, kMaxMessage = 512;

int64_t Count(const ObjectReader& reader, std::string_view key) {
  return reader.Integer(key, 0, std::numeric_limits<int64_t>::max(), 0);
}

std::string Short(const std::string& text) { return CutText(text, kMaxMessage); }

PodCheck ReadCheck(const ObjectReader& reader) {
  PodCheck check{reader.Text("name"), reader.Text("state"), reader.Text("condition"),
                 reader.Text("reason"), ""};
  for (const ObjectReader& problem : reader.Objects("problems")) {
    if (!check.message.empty()) check.message += "\n";
    check.message += problem.Text("message");
  }
  check.message = Short(check.message);
  return check;
}

PodGroup::Rejected ReadRejected(const ObjectReader& candidate) {
  PodGroup::Rejected rejected{candidate.Text("backend"), {}};
  for (const ObjectReader& refusal : candidate.Objects("refusals")) {
    if (rejected.reasons.size() < kMaxReasons)
      rejected.reasons.push_back(Short(refusal.Text("text")));
  }
  return rejected;
}

// A group of several attention groups shows the first one's request, and every backend. Rows of
// other platforms than the plan's are refused for that alone, and left out.
PodGroup ReadGroup(const ObjectReader& reader, const std::string& platform) {
  PodGroup group;
  group.index = Count(reader, "index");
  group.layers = static_cast<int64_t>(reader.Integers("layers", 0, 1 << 20).size());
  group.block_tokens = Count(reader, "blockSize");
  group.kernel_block_tokens = Count(reader, "kernelBlockSize");
  group.blocks = Count(reader, "blocks");
  group.bytes = Count(reader, "bytes");
  group.name = reader.Text("name");
  group.kind = reader.Text("kind");
  group.dtype = reader.Text("dtype");
  for (const ObjectReader& attention : reader.Objects("attention")) {
    std::string backend = attention.Text("backend");
    if (group.backend.empty()) {
      group.backend = backend;
      group.requested = attention.Text("requestedBackend");
      group.reason = attention.Text("reason");
    } else if (group.backend != backend) {
      group.backend += "+" + backend;
    }
    for (const ObjectReader& candidate : attention.Objects("candidates")) {
      const bool here = candidate.Text("platform") == platform;
      if (here && !candidate.Flag("valid", true) && group.rejected.size() < kMaxRejected)
        group.rejected.push_back(ReadRejected(candidate));
    }
  }
  return group;
}

}  // namespace

const PodCheck* PodStatus::Check(std::string_view name) const {
  auto found = std::find_if(checks.begin(), checks.end(),
                            [&](const PodCheck& check) { return check.name == name; });
  return found == checks.end() ? nullptr : &*found;
}

PodStatus ReadPodStatus(JsonElement value, const std::string& address, Problems& problems) {
  ObjectReader reader(value, address, problems);
  PodStatus pod;
  pod.address = address;
  pod.digest = reader.Text("digest");
  pod.phase = reader.Text("phase");
  pod.ready = reader.Flag("ready", false);
  for (const ObjectReader& check : reader.Objects("checks")) pod.checks.push_back(ReadCheck(check));
  ObjectReader plan = reader.Object("plan");
  pod.hostname = plan.Text("platformName");
  pod.platform = plan.Text("platform");
  pod.product = plan.Text("product");
  pod.layout = plan.Text("layout");
  for (const ObjectReader& group : plan.Objects("kvGroups")) {
    if (pod.groups.size() < kMaxGroups) pod.groups.push_back(ReadGroup(group, pod.platform));
  }
  return pod;
}

std::string PlanLine(std::string_view group, std::string_view backend, int64_t block_tokens,
                     std::string_view layout) {
  return fmt::format("{}: {}, block {}, {}", group, backend, block_tokens, layout);
}

std::vector<std::string> PlanLines(const PodStatus& pod) {
  std::vector<std::string> lines;
  for (const PodGroup& group : pod.groups)
    lines.push_back(PlanLine(group.name, group.backend, group.block_tokens, pod.layout));
  return lines;
}

}  // namespace ashlar::hooks
