// What the spec's `backends` say.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace ashlar {

struct Catalogue;  // select.h

// What the spec says of one KV group, each part from the most specific entry that states it: group
// name, then kind, then default. The fields say where it stands.
struct Wish {
  std::string use, use_field;
  std::vector<std::string> prefer, forbid;
  std::string prefer_field, forbid_field;
  bool operator==(const Wish&) const = default;
};
Wish WishFor(const Spec& spec, const std::string& group, KvKind kind);

// Mistakes in `backends` that no selection would notice: unknown keys and unknown row names.
Problems CheckWishes(const Spec& spec, const Catalogue& catalogue,
                     const std::vector<KvGroup>& groups);

}  // namespace ashlar
