// The cluster's nodes by what they offer, and each kind of node as the planner's Platform.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator-hooks/json_reader.h"
#include "probe/platform.h"

namespace ashlar::hooks {

// Nodes that are alike in all that planning asks for.
struct NodeKind {
  int count = 0;
  std::map<std::string, int64_t> devices;  // resource name -> allocatable of one node
  int64_t cpus = 0, memory_bytes = 0;
  // Labels of the vendor's optional software: hints, absent without it.
  std::string product;
  std::string compute_capability;  // "9.0"
  int64_t device_bytes = 0;

  bool operator<(const NodeKind& other) const;
  std::string Signature() const;  // equal exactly for equal kinds and counts
  std::string Name() const;       // "NVIDIA-H200", "amd.com/gpu", "cpu"
};

// `parent` is the object that has a member "related". Sorted; the order of the nodes does not
// matter.
std::vector<NodeKind> ReadNodes(const ObjectReader& parent);

// What a pod with devices of `resource` ("" for none) would find there. Empty when the labels do
// not say enough to plan.
std::optional<Platform> PlatformOf(const NodeKind& kind, const std::string& resource);

}  // namespace ashlar::hooks
