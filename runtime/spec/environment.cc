#include "spec/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/nearest.h"
#include "spec/source_text.h"
#include "spec/spec.h"

namespace ashlar {
namespace {

constexpr std::string_view kPrefix = "ASHLAR_";

struct PeerVariable {
  std::string_view name;  // a trailing * stands for any ending
  std::string_view field;
};
constexpr std::array<PeerVariable, 6> kPeers = {{
    {"VLLM_ATTENTION_BACKEND", "backends.default.use"},
    {"VLLM_KV_CACHE_LAYOUT", "kv.layout"},
    {"VLLM_BATCH_INVARIANT", "numerics: invariant"},
    {"VLLM_ROCM_*", "backends.default.prefer"},
    {"VLLM_CPU_KVCACHE_SPACE", "kv.memory"},
    {"VLLM_CPU_OMP_THREADS_BIND", "cpu.threads"},
}};

bool Matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

// Kubernetes sets these in every pod for each Service of the namespace: a Service named ashlar
// yields ASHLAR_SERVICE_HOST, ASHLAR_PORT_8000_TCP and so on.
bool IsServiceLink(std::string_view name) {
  return name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != name.npos ||
         name.ends_with("_PORT") || name.find("_PORT_") != name.npos;
}

// "kv.blockSize" and KV_BLOCK_SIZE both become "kvblocksize".
std::string Folded(std::string_view text) {
  std::string folded;
  for (char c : text) {
    if (c == '.' || c == '_' || c == '*') continue;
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded;
}

std::string Leaf(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// The field that somebody meant by ASHLAR_<rest>, or "".
std::string FieldFor(std::string_view rest) {
  std::string folded = Folded(rest);
  std::vector<std::string> names;
  for (const SpecField& field : SpecFields()) {
    if (Folded(field.path) == folded || Folded(Leaf(field.path)) == folded) return field.path;
    names.push_back(Folded(field.path));
  }
  std::string nearest = Nearest(folded, names);
  auto found = std::find(names.begin(), names.end(), nearest);
  if (nearest.empty() || found == names.end()) return "";
  return SpecFields()[static_cast<size_t>(found - names.begin())].path;
}

Problem OwnVariable(std::string_view name) {
  std::string field = FieldFor(name.substr(kPrefix.size()));
  return {Printable(name), "the environment variable is set",
          "fields of the spec; no environment variable changes behaviour",
          field.empty() ? "unset it; docs/spec.md lists the fields"
                        : fmt::format("unset it and set {} in the spec", field)};
}

}  // namespace

EnvironmentReport CheckEnvironment(const std::vector<std::string>& environment) {
  EnvironmentReport report;
  std::vector<std::string> links;
  for (const std::string& entry : environment) {
    std::string_view name = std::string_view(entry).substr(0, entry.find('='));
    if (name.starts_with(kPrefix)) {
      if (IsServiceLink(name)) {
        links.emplace_back(Printable(name));
      } else {
        report.problems.push_back(OwnVariable(name));
      }
      continue;
    }
    for (const PeerVariable& peer : kPeers) {
      if (!Matches(name, peer.name)) continue;
      report.warnings.push_back(
          fmt::format("{} is set and changes nothing here; the spec's field is {}", Printable(name),
                      peer.field));
    }
  }
  if (!links.empty()) {
    std::sort(links.begin(), links.end());
    report.warnings.push_back(fmt::format(
        "{} is ignored{}: Kubernetes sets it for a Service named ashlar*", links.front(),
        links.size() > 1 ? fmt::format(" with {} like it", links.size() - 1) : ""));
  }
  return report;
}

}  // namespace ashlar
