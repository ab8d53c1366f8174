#include "plan/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "plan/layout.h"
#include "plan/select.h"

namespace ashlar {
namespace {

const AttentionRow* FindRow(const std::vector<AttentionRow>& rows, const std::string& name) {
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](const AttentionRow& candidate) { return candidate.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

std::string Dims(int64_t heads, int64_t states, int64_t content) {
  return fmt::format("[{}, {}, {}]", heads, states, content);
}

std::string PlaceOf(const KvGroup& group, const AttentionGroup& attention) {
  return fmt::format("group {} attn {}", group.name, attention.index);
}

constexpr const char* kReport = "report this: the backend's row does not describe its kernel";
constexpr const char* kReportArena = "report this: the arena was not laid out as planned";

// P against D for one attention group; `name` declares.
void CheckDeclared(const KvGroup& group, const AttentionGroup& attention, std::string_view name,
                   const DeclaredShape& declared, Problems& out) {
  int64_t ratio = group.block_tokens / std::max(group.kernel_block_tokens, 1);
  int64_t states = group.states / std::max<int64_t>(ratio, 1);
  std::string found = fmt::format(
      "{} declares {}{}", name, Dims(declared.head_slots, declared.states, declared.content_bytes),
      declared.planes ? " in planes of its own" : "");
  if (declared.planes || declared.head_slots != group.head_slots || declared.states != states ||
      declared.content_bytes != group.content_bytes) {
    out.push_back({PlaceOf(group, attention), found,
                   "the cache holds " + Dims(group.head_slots, states, group.content_bytes) +
                       " [heads, tokens, bytes] a kernel block",
                   kReport});
  }
  const int64_t extents[] = {declared.head_slots, declared.states, declared.content_bytes, ratio};
  std::optional<int64_t> bytes = CheckedProduct(extents);
  if (!bytes || *bytes != group.used_bytes()) {
    out.push_back({PlaceOf(group, attention),
                   fmt::format("{}, {} bytes a block", found, bytes.value_or(-1)),
                   fmt::format("the cache holds {} bytes a block", group.used_bytes()), kReport});
  }
}

// Dimensions from the inside out must step over everything inside them: then no two (layer, block,
// head, token) share a byte.
struct Dimension {
  int64_t stride, extent;
};
bool NeverOverlaps(std::vector<Dimension> dims, int64_t content_bytes) {
  std::erase_if(dims, [](const Dimension& dim) { return dim.extent <= 1; });
  std::sort(dims.begin(), dims.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  __int128 reach = content_bytes;
  for (const Dimension& dim : dims) {
    if (dim.stride < reach) return false;
    reach += __int128{dim.stride} * (dim.extent - 1);
  }
  return true;
}

// One past the last byte that a kernel may touch through the view.
__int128 EndOf(const AllocatedView& view) {
  return __int128{view.base_offset} + __int128{view.blocks - 1} * view.block_stride +
         __int128{view.head_slots - 1} * view.head_stride +
         __int128{view.block_tokens - 1} * view.token_stride + view.content_bytes;
}

// Everything that concerns one view alone.
class ViewCheck {
 public:
  ViewCheck(const Plan& plan, const std::vector<AttentionRow>& rows, const AllocatedView& view,
            Problems& out)
      : plan_(plan), rows_(rows), view_(view), out_(out) {}

  void Run() {
    const KvGroup& group = plan_.groups[static_cast<size_t>(view_.group)];
    CheckExtents(group);
    CheckStrides(group);
    CheckReach();
    CheckKernels(group);
  }

 private:
  std::string Place() const {
    return fmt::format("group {} layer slot {}",
                       plan_.groups[static_cast<size_t>(view_.group)].name, view_.layer_slot);
  }
  void Expect(std::string_view what, int64_t found, int64_t wanted) {
    if (found == wanted) return;
    out_.push_back(
        {Place(), fmt::format("{} is {}", what, found), fmt::format("{}", wanted), kReportArena});
  }

  void CheckExtents(const KvGroup& group) {
    Expect("kernel block", view_.block_tokens, group.kernel_block_tokens);
    Expect("head slots", view_.head_slots, group.head_slots);
    Expect("bytes a token", view_.content_bytes, group.content_bytes);
    Expect("blocks", view_.blocks, Blocks(group));
  }

  void CheckStrides(const KvGroup& group) {
    KvExtents extents = {static_cast<int64_t>(group.layers.size()), Blocks(group), group.head_slots,
                         group.kernel_block_tokens, group.content_bytes};
    std::optional<KvStrides> strides =
        StridesOf(plan_.layout, extents, group.padded() ? group.page_bytes : 0);
    if (!strides) return;
    Expect("block stride", view_.block_stride, (*strides)[kDimB]);
    Expect("head stride", view_.head_stride, (*strides)[kDimH]);
    Expect("token stride", view_.token_stride, (*strides)[kDimN]);
    Expect("base", view_.base_offset, group.offset + view_.layer_slot * (*strides)[kDimL]);
  }

  void CheckReach() {
    __int128 end = EndOf(view_);
    if (view_.base_offset >= 0 && end <= view_.allocation_bytes) return;
    out_.push_back({Place(), fmt::format("the view ends at byte {}", static_cast<int64_t>(end)),
                    fmt::format("0 to {}, the allocation", view_.allocation_bytes), kReportArena});
  }

  void CheckKernels(const KvGroup& group) {
    int model_layer = group.layers[static_cast<size_t>(view_.layer_slot)];
    for (const AttentionGroup& attention : group.attention) {
      if (std::find(attention.layers.begin(), attention.layers.end(), model_layer) ==
          attention.layers.end())
        continue;
      const AttentionRow* row = FindRow(rows_, attention.row);
      if (row == nullptr) continue;  // CheckDeclaredShapes names it
      bool takes =
          std::any_of(row->kernel_blocks.begin(), row->kernel_blocks.end(),
                      [&](const BlockRule& rule) { return rule.Accepts(view_.block_tokens); });
      if (!takes) {
        out_.push_back({Place(), fmt::format("kernel blocks of {} tokens", view_.block_tokens),
                        fmt::format("{} takes {}", row->name, Text(row->kernel_blocks)),
                        kReportArena});
      }
      DeclaredShape declared = Declare(*row, attention.layer, view_.block_tokens, group.dtype);
      Expect(row->name + "'s head slots", view_.head_slots, declared.head_slots);
      Expect(row->name + "'s bytes a token", view_.content_bytes, declared.content_bytes);
    }
  }

  static int64_t Blocks(const KvGroup& group) {
    return group.blocks * (group.block_tokens / group.kernel_block_tokens);
  }

  const Plan& plan_;
  const std::vector<AttentionRow>& rows_;
  const AllocatedView& view_;
  Problems& out_;
};

using GroupViews = std::map<int, std::vector<const AllocatedView*>>;

// Layers of one group, which may lie inside each other: their bases are one more dimension.
void CheckLayers(const KvGroup& group, const std::vector<const AllocatedView*>& views,
                 Problems& out) {
  const AllocatedView& first = *views.front();
  std::vector<int64_t> bases;
  for (const AllocatedView* view : views) bases.push_back(view->base_offset);
  std::sort(bases.begin(), bases.end());
  int64_t layer_stride = bases.size() > 1 ? bases[1] - bases[0] : 0;
  for (size_t i = 2; i < bases.size(); ++i)
    layer_stride = std::min(layer_stride, bases[i] - bases[i - 1]);
  std::vector<Dimension> dims = {{layer_stride, static_cast<int64_t>(bases.size())},
                                 {first.block_stride, first.blocks},
                                 {first.head_stride, first.head_slots},
                                 {first.token_stride, first.block_tokens}};
  if (NeverOverlaps(dims, first.content_bytes)) return;
  out.push_back(
      {"group " + group.name, "its blocks overlap", "each byte in one block", kReportArena});
}

// Pools of different groups lie apart.
void CheckPools(const Plan& plan, const GroupViews& groups, Problems& out) {
  struct Span {
    __int128 begin, end;
    int group;
  };
  std::vector<Span> spans;
  for (const auto& [index, views] : groups) {
    Span span{views.front()->base_offset, EndOf(*views.front()), index};
    for (const AllocatedView* view : views) {
      span.begin = std::min<__int128>(span.begin, view->base_offset);
      span.end = std::max(span.end, EndOf(*view));
    }
    spans.push_back(span);
  }
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].begin >= spans[i - 1].end) continue;
    out.push_back(
        {fmt::format("groups {} and {}", plan.groups[static_cast<size_t>(spans[i - 1].group)].name,
                     plan.groups[static_cast<size_t>(spans[i].group)].name),
         "their pools overlap", "each byte in one pool", kReportArena});
  }
}

// One view for each layer slot of each group, and no other.
bool CheckCoverage(const Plan& plan, const std::vector<AllocatedView>& views, Problems& out) {
  std::map<std::pair<int, int>, int> count;
  for (const AllocatedView& view : views) ++count[{view.group, view.layer_slot}];
  size_t before = out.size();
  for (const KvGroup& group : plan.groups) {
    for (size_t slot = 0; slot < group.layers.size(); ++slot) {
      int found = count[{group.index, static_cast<int>(slot)}];
      if (found != 1) {
        out.push_back({fmt::format("group {} layer slot {}", group.name, slot),
                       fmt::format("{} views", found), "1", kReportArena});
      }
      count.erase({group.index, static_cast<int>(slot)});
    }
  }
  for (const auto& [key, found] : count) {
    out.push_back({fmt::format("group {} layer slot {}", key.first, key.second),
                   "a view of nothing that was planned", "", kReportArena});
  }
  return out.size() == before;
}

}  // namespace

DeclaredShape Declare(const AttentionRow& row, const LayerSpec& layer, int kernel_block_tokens,
                      DType kv_dtype) {
  // A latent row keeps one entry a token, its head; others K beside V of each KV head, of one size
  // where the layer states none for V. A row with its own number of head slots spreads the same
  // bytes over them.
  int64_t heads = row.mla ? 1 : layer.kv_heads;
  int64_t values = layer.head_dim;
  if (!row.mla) values += layer.head_dim_v > 0 ? layer.head_dim_v : layer.head_dim;
  int64_t token_bytes = heads * StorageBytes(kv_dtype, values).value_or(0);
  if (row.sparse) token_bytes += layer.indexer_bytes;
  DeclaredShape shape;
  shape.head_slots = row.head_slots > 0 ? row.head_slots : heads;
  shape.states = kernel_block_tokens;
  shape.content_bytes = token_bytes / shape.head_slots;
  shape.planes = row.head_slots > 0;
  return shape;
}

DeclaredShape DeclareLatentOps(const LayerSpec& layer, int kernel_block_tokens, DType kv_dtype) {
  int64_t latent = StorageBytes(kv_dtype, layer.head_dim).value_or(0);
  return {1, kernel_block_tokens, latent + layer.indexer_bytes, false};
}

Problems CheckDeclaredShapes(const Plan& plan, const std::vector<AttentionRow>& rows) {
  Problems problems;
  for (const KvGroup& group : plan.groups) {
    if (!NeedsRow(group.kind)) continue;
    for (const AttentionGroup& attention : group.attention) {
      if (attention.op_driven) {
        CheckDeclared(group, attention, kOpDriven,
                      DeclareLatentOps(attention.layer, group.kernel_block_tokens, group.dtype),
                      problems);
        continue;
      }
      const AttentionRow* row = FindRow(rows, attention.row);
      if (row == nullptr) {
        problems.push_back({PlaceOf(group, attention),
                            fmt::format("backend \"{}\" declares no shape", attention.row),
                            "a row of the platform's plugins", "install its plugin"});
        continue;
      }
      CheckDeclared(group, attention, row->name,
                    Declare(*row, attention.layer, group.kernel_block_tokens, group.dtype),
                    problems);
    }
  }
  return problems;
}

Problems CheckAllocatedViews(const Plan& plan, const std::vector<AttentionRow>& rows,
                             const std::vector<AllocatedView>& views) {
  Problems problems;
  if (!CheckCoverage(plan, views, problems)) return problems;
  GroupViews groups;
  for (const AllocatedView& view : views) {
    ViewCheck(plan, rows, view, problems).Run();
    groups[view.group].push_back(&view);
  }
  for (const auto& [index, members] : groups)
    CheckLayers(plan.groups[static_cast<size_t>(index)], members, problems);
  CheckPools(plan, groups, problems);
  return problems;
}

}  // namespace ashlar
