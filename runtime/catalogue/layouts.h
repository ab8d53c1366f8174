// How vLLM 0.33 resolves one KV cache layout for all workers, where it differs from plan/layout.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/cache_spec.h"
#include "plan/layout.h"

namespace ashlar {

enum class LayoutError {
  kNone,
  kUnknown,       // no layout of that name
  kNoCommon,      // no layout is in every list
  kDisagree,      // workers have different lists
  kNotCompact,    // pages of different shapes need a block-compact one
  kNotOutermost,  // sharded and whole caches with different pages need blocks outermost
  kNotCandidate,  // what was asked for is not in every list
  kRecorded,      // another one stands already
  kMixedPages,    // pages of different sizes that the layout cannot hold side by side
  kPaddedPieces,  // a padded page that would lie in pieces
  kPaddedSplit,   // a padded page cannot be split into kernel blocks
  kUnevenSplit,   // kernel blocks that do not divide the block
  kSplitBlocks,   // blocks of one layer that do not follow each other cannot be split
};
std::string_view Label(LayoutError error);  // "not_compact"

struct LayoutOutcome {
  LayoutError error = LayoutError::kNone;
  KvLayout layout = KvLayout::kLBNHC;
};

// A name of ours or an alias.
std::optional<KvLayout> ParseReferenceLayout(std::string_view name);

// Of one worker, from the lists of its backends; an empty list takes any and does not vote.
std::vector<KvLayout> ReferenceCandidates(const std::vector<std::vector<KvLayout>>& lists);

struct ReferenceCachePage {
  PageGeometry page;
  bool sharded = true;  // among the ranks of context parallelism
};
struct ReferenceLayoutRequest {
  std::vector<std::vector<KvLayout>> workers;  // candidates of each
  std::vector<ReferenceCachePage> pages;
  std::string asked;      // by the user; "" nothing
  std::string preferred;  // by the KV connector; "" nothing
  std::optional<KvLayout> recorded;
};
LayoutOutcome ResolveReferenceLayout(const ReferenceLayoutRequest& request);

// What is recorded once stays.
LayoutOutcome RecordReferenceLayout(std::optional<KvLayout> recorded, std::string_view name);

// Whether groups with pages of these sizes can share one allocation.
LayoutError ExpressReferencePages(KvLayout layout, const std::vector<std::vector<int64_t>>& groups);

// How other software calls the order inside a block: "HND", "NHD", or "" for none.
std::string_view OrderInBlock(KvLayout layout);

}  // namespace ashlar
