// Groups whose blocks hold one page of each of their layers, for layouts with blocks outermost:
// pages need not be equal, only the blocks about as large.
#pragma once

#include <vector>

#include "catalogue/groups.h"

namespace ashlar {

ReferenceGroup MakeGroup(const std::vector<ReferenceCache>& layers, std::vector<int> members,
                         bool mixed);

// Whether these layers keep the same tokens in blocks of one size, so that one block table serves
// them although their pages differ.
bool OfOneType(const std::vector<ReferenceCache>& layers, const std::vector<int>& members);

// One group for full layers; layers of another type are split until a block of them takes no more
// than one of the full layers. A type with pages of several sizes is split into sets of one layer
// of each size: where their numbers differ, the layers that are over stand in no group, as in the
// engine that this follows.
ReferenceGrouping PackGroups(const std::vector<ReferenceCache>& layers,
                             const std::vector<int>& members);

}  // namespace ashlar
