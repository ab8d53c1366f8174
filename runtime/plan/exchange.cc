#include "plan/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "plan/block_size.h"
#include "plan/layout.h"

namespace ashlar {
namespace {

// One side's group: what the document says and the rows that its backends are.
struct Side {
  const Json& group;
  GroupRows rows;
  int64_t Number(const char* key) const { return group.value(key, int64_t{0}); }
  std::string Text(const char* key) const { return group.value(key, std::string()); }
};

struct Pair {
  std::string name;
  Side here, there;
};

GroupRows RowsOf(const Json& group, const std::vector<AttentionRow>& rows) {
  GroupRows found;
  for (const Json& attention : group["attention"]) {
    std::string name = attention.value("backend", std::string());
    for (const AttentionRow& row : rows) {
      if (row.name == name && std::find(found.begin(), found.end(), &row) == found.end())
        found.push_back(&row);
    }
  }
  return found;
}

// What a block holds, whatever its size and order.
void CompareContent(const Pair& pair, std::vector<std::string>& out) {
  auto compare = [&](const std::string& what, const Json& here, const Json& there) {
    if (here != there)
      out.push_back(fmt::format("{} {}: {} here, {} there", pair.name, what, DumpJson(here),
                                DumpJson(there)));
  };
  for (const char* key : {"kind", "window", "layers", "dtype"})
    compare(key, pair.here.group.value(key, Json()), pair.there.group.value(key, Json()));
  const Json &here = pair.here.group["page"], &there = pair.there.group["page"];
  compare("head slots", here.value("headSlots", Json()), there.value("headSlots", Json()));
  compare("bytes a head and token", here.value("contentBytes", Json()),
          there.value("contentBytes", Json()));
}

std::vector<Pair> PairGroups(const Json& here, const Json& there,
                             const std::vector<AttentionRow>& rows,
                             std::vector<std::string>& differences) {
  std::vector<Pair> pairs;
  const Json &ours = here["kvGroups"], &theirs = there["kvGroups"];
  for (const Json& group : ours) {
    auto match = std::find_if(theirs.begin(), theirs.end(),
                              [&](const Json& other) { return other["name"] == group["name"]; });
    std::string name = group["name"].get<std::string>();
    if (match == theirs.end()) {
      differences.push_back(fmt::format("{}: a group here, none there", name));
      continue;
    }
    pairs.push_back({name, {group, RowsOf(group, rows)}, {*match, RowsOf(*match, rows)}});
    CompareContent(pairs.back(), differences);
  }
  if (theirs.size() > pairs.size())
    differences.push_back(fmt::format("{} groups here, {} there", ours.size(), theirs.size()));
  return pairs;
}

// Both sides cut and lay out their pages alike already.
bool Alike(const std::vector<Pair>& pairs, const Json& here, const Json& there) {
  auto same = [](const Json& a, const Json& b, const char* key) {
    return a.value(key, Json()) == b.value(key, Json());
  };
  return same(here, there, "layout") && same(here, there, "hashBlockSize") &&
         std::all_of(pairs.begin(), pairs.end(), [&](const Pair& pair) {
           return same(pair.here.group, pair.there.group, "blockSize") &&
                  same(pair.here.group, pair.there.group, "kernelBlockSize") &&
                  same(pair.here.group, pair.there.group, "page");
         });
}

std::string Backends(const Side& side) {
  std::vector<std::string> names;
  for (const Json& attention : side.group["attention"])
    names.push_back(attention.value("backend", std::string()));
  return fmt::format("{}", fmt::join(names, ", "));
}

// Both sides take blocks of `tokens` and split them alike: a kernel block is a page of its own.
bool BothTake(const std::vector<Pair>& pairs, int tokens) {
  return std::all_of(pairs.begin(), pairs.end(), [&](const Pair& pair) {
    for (const Side* side : {&pair.here, &pair.there}) {
      for (const AttentionRow* row : side->rows) {
        if (!SupportsBlock(*row, tokens)) return false;
      }
    }
    std::optional<int> kernel = KernelBlock(pair.here.rows, tokens);
    return kernel && kernel == KernelBlock(pair.there.rows, tokens);
  });
}

std::optional<int> CommonBlock(const std::vector<Pair>& pairs) {
  int here = static_cast<int>(pairs.front().here.Number("blockSize"));
  int there = static_cast<int>(pairs.front().there.Number("blockSize"));
  for (int tokens : {here, there}) {
    if (BothTake(pairs, tokens)) return tokens;
  }
  for (int tokens = std::max(1, std::min(here, there)); tokens <= kLargestBlock; ++tokens) {
    if (BothTake(pairs, tokens)) return tokens;
  }
  for (int tokens = std::min(here, there) - 1; tokens > 0; --tokens) {
    if (BothTake(pairs, tokens)) return tokens;
  }
  return std::nullopt;
}

std::optional<KvLayout> CommonLayout(const std::vector<Pair>& pairs, const Json& here,
                                     const Json& there) {
  auto fits = [&](KvLayout layout) {
    auto takes = [&](const AttentionRow* row) {
      return row->layouts.empty() ||
             std::find(row->layouts.begin(), row->layouts.end(), layout) != row->layouts.end();
    };
    return std::all_of(pairs.begin(), pairs.end(), [&](const Pair& pair) {
      return std::all_of(pair.here.rows.begin(), pair.here.rows.end(), takes) &&
             std::all_of(pair.there.rows.begin(), pair.there.rows.end(), takes);
    });
  };
  for (const Json* plan : {&here, &there}) {
    std::optional<KvLayout> own = ParseKvLayout((*plan)["layout"].get<std::string>());
    if (own && fits(*own)) return own;
  }
  for (const LayoutInfo& info : kLayouts) {
    if (fits(info.layout)) return info.layout;
  }
  return std::nullopt;
}

// Tokens of one head that lie together, or those of all heads when a token's heads do.
struct Run {
  bool all_heads = false;
  int64_t tokens = 0;
};
Run RunOf(const Side& side, std::string_view layout_name) {
  std::optional<KvLayout> layout = ParseKvLayout(layout_name);
  if (!layout) return {};
  const auto& order = Info(*layout).order;
  auto at = [&](KvDim dim) { return std::find(order.begin(), order.end(), dim) - order.begin(); };
  if (at(kDimN) < at(kDimH)) return {true, side.Number("blockSize")};
  return {false, side.Number(BlockCompact(*layout) ? "kernelBlockSize" : "blockSize")};
}

Exchange::Repack RepackOf(const Pair& pair, const Json& here, const Json& there) {
  Exchange::Repack repack{.group = pair.name};
  int64_t a = pair.here.Number("blockSize"), b = pair.there.Number("blockSize");
  int64_t heads = pair.here.group["page"].value("headSlots", int64_t{0});
  int64_t content = pair.here.group["page"].value("contentBytes", int64_t{0});
  if (a <= 0 || b <= 0) return repack;
  repack.unit_tokens = std::lcm(a, b);
  repack.blocks_here = repack.unit_tokens / a;
  repack.blocks_there = repack.unit_tokens / b;
  Run from = RunOf(pair.here, here["layout"].get<std::string>());
  Run to = RunOf(pair.there, there["layout"].get<std::string>());
  bool together = from.all_heads && to.all_heads;
  int64_t tokens = from.all_heads == to.all_heads ? std::gcd(from.tokens, to.tokens) : 1;
  if (tokens <= 0) return repack;
  repack.run_bytes = tokens * content * (together ? heads : 1);
  repack.runs = repack.unit_tokens / tokens * (together ? 1 : heads);
  return repack;
}

}  // namespace

Exchange MatchPlans(const Json& here, const Json& there, const std::vector<AttentionRow>& rows) {
  Exchange exchange;
  std::vector<Pair> pairs = PairGroups(here, there, rows, exchange.differences);
  if (here.value("numerics", Json()) != there.value("numerics", Json()))
    exchange.differences.push_back("numerics differ");
  if (here.value("quantization", Json()) != there.value("quantization", Json()))
    exchange.differences.push_back("quantization differs");
  if (!exchange.differences.empty() || pairs.empty()) return exchange;
  if (here["hash"] == there["hash"]) {
    exchange.verdict = Exchange::Verdict::kSame;
    return exchange;
  }
  if (Alike(pairs, here, there)) {
    exchange.verdict = Exchange::Verdict::kRows;
    for (const Pair& pair : pairs)
      exchange.differences.push_back(fmt::format("{}: {} here, {} there", pair.name,
                                                 Backends(pair.here), Backends(pair.there)));
    return exchange;
  }
  std::optional<int> block = CommonBlock(pairs);
  std::optional<KvLayout> layout = CommonLayout(pairs, here, there);
  if (block && layout) {
    exchange.verdict = Exchange::Verdict::kChange;
    exchange.block_tokens = *block;
    exchange.layout = *layout;
    return exchange;
  }
  exchange.verdict = Exchange::Verdict::kRepack;
  for (const Pair& pair : pairs) exchange.repacks.push_back(RepackOf(pair, here, there));
  return exchange;
}

}  // namespace ashlar
