// The reference plugin with graphs, in memory under another name: between graph_begin and graph_end
// ops are kept with their arguments, and each launch runs them over what their arrays hold then.
#include <functional>
#include <tuple>
#include <vector>

#include "reference_table.h"

struct ashlar_graph {
  std::vector<std::function<int()>> ops;
};

extern "C" {
int ashlar_test_launches = 0;
const ashlar_plugin* ashlar_plugin_table(void);
}

namespace {

thread_local ashlar_graph* begun = nullptr;

// An argument as it is; of a struct that only the call lends, a copy.
template <class T>
struct Kept {
  T value;
  T Get() const { return value; }
};
template <class T>
struct Lent {
  explicit Lent(const T* args) : value(*args) {}
  T value;
  const T* Get() const { return &value; }
};
template <>
struct Kept<const ashlar_qkv_prepare*> : Lent<ashlar_qkv_prepare> {
  using Lent::Lent;
};
template <>
struct Kept<const ashlar_attention*> : Lent<ashlar_attention> {
  using Lent::Lent;
};
template <>
struct Kept<const ashlar_projection*> : Lent<ashlar_projection> {
  using Lent::Lent;
};

template <class... Args>
int RunOrKeep(int (*op)(ashlar_device*, ashlar_stream*, Args...), ashlar_device* device,
              ashlar_stream* stream, Args... args) {
  if (begun == nullptr) return op(device, stream, args...);
  begun->ops.push_back([op, device, stream, kept = std::tuple(Kept<Args>{args}...)] {
    return std::apply([&](const auto&... arg) { return op(device, stream, arg.Get()...); }, kept);
  });
  return ASHLAR_OK;
}

// The op of the reference that stands at this place of the table.
template <auto kOp>
struct Op;
template <class... Args, int (*ashlar_plugin::*kOp)(ashlar_device*, ashlar_stream*, Args...)>
struct Op<kOp> {
  static int Run(ashlar_device* device, ashlar_stream* stream, Args... args) {
    return RunOrKeep(ReferenceTable().*kOp, device, stream, args...);
  }
};

// Leaves out idle sequences of one token, which the reference refuses; they stand last.
int Attend(ashlar_device* device, ashlar_stream* stream, int32_t row,
           const ashlar_attention* args) {
  ashlar_attention some = *args;
  while (some.sequences > 0 && some.context[some.sequences - 1] == 0) --some.sequences;
  if (some.sequences == 0) return ASHLAR_OK;
  some.q.shape[0] = some.out.shape[0] = some.query_start[some.sequences];
  return ReferenceTable().attention(device, stream, row, &some);
}
int Attention(ashlar_device* device, ashlar_stream* stream, int32_t row,
              const ashlar_attention* args) {
  return RunOrKeep(Attend, device, stream, row, args);
}

int GraphBegin(ashlar_device*, ashlar_stream*) {
  begun = new ashlar_graph;
  return ASHLAR_OK;
}
int GraphEnd(ashlar_device*, ashlar_stream*, ashlar_graph** out) {
  *out = begun;
  begun = nullptr;
  return ASHLAR_OK;
}
int GraphLaunch(ashlar_device*, ashlar_stream*, ashlar_graph* graph) {
  ++ashlar_test_launches;
  for (const auto& op : graph->ops) {
    if (const int code = op(); code != ASHLAR_OK) return code;
  }
  return ASHLAR_OK;
}
void GraphDestroy(ashlar_device*, ashlar_graph* graph) { delete graph; }

}  // namespace

const ashlar_plugin* ashlar_plugin_table(void) {
  static const ashlar_plugin table = [] {
    ashlar_plugin copy = ReferenceTable();
    copy.memory = "island";
    copy.graph_begin = GraphBegin;
    copy.graph_end = GraphEnd;
    copy.graph_launch = GraphLaunch;
    copy.graph_destroy = GraphDestroy;
    copy.embed = Op<&ashlar_plugin::embed>::Run;
    copy.gather = Op<&ashlar_plugin::gather>::Run;
    copy.rms_norm = Op<&ashlar_plugin::rms_norm>::Run;
    copy.matmul = Op<&ashlar_plugin::matmul>::Run;
    copy.qkv_prepare = Op<&ashlar_plugin::qkv_prepare>::Run;
    copy.attention = Attention;
    copy.gated_activation = Op<&ashlar_plugin::gated_activation>::Run;
    copy.add = Op<&ashlar_plugin::add>::Run;
    copy.sample = Op<&ashlar_plugin::sample>::Run;
    copy.resolve_ids = Op<&ashlar_plugin::resolve_ids>::Run;
    return copy;
  }();
  return &table;
}
