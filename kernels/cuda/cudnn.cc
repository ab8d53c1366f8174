// Attention as a graph of cuDNN, and its plans. The operations are in the order and form that the
// library's attention engines know.
#include "cudnn.h"

#include <cmath>
#include <map>

#include "cudnn_graph.h"

namespace ashlar::gpu_kernels {
namespace {

using namespace cudnn;

// Tensors that a call brings, by the number under which it brings them.
enum Number : int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kKTables,
  kVTables,
  kTokens,
  kContexts,
  kQBegins,
  kOutBegins,
  kScale,
  kLeast
};

// softmax(scale q K^T, masked) V, where row i of a sequence's new tokens sees the keys up to
// i + context - tokens.
void MakeAttention(Maker& m, const SdpaShape& s) {
  using Value = Maker::Value;
  const int type = s.type == ASHLAR_BF16 ? kBF16 : kF16;
  const int64_t b = s.sequences, keys = s.table_blocks * s.block_tokens, d = s.head_dim;
  const auto lengths = [&](int64_t number) {
    return m.Tensor(number, kInt32, {b, 1, 1, 1}, {1, 1, 1, 1});
  };
  const auto begins = [&](int64_t number) {
    return m.Tensor(number, kInt32, {b + 1, 1, 1, 1}, {1, 1, 1, 1});
  };
  const auto rows = [&](int64_t number, int64_t token, const Value& begin) {
    return m.Tensor(number, type, {b, s.q_heads, s.most_tokens, d},
                    {s.most_tokens * token, d, token, 1}, begin);
  };
  const auto pages = [&](int64_t number) {
    return m.Tensor(number, type, {s.cache_blocks, s.kv_heads, s.block_tokens, d},
                    {s.cache_block, s.cache_head, s.cache_token, 1});
  };
  const auto tables = [&](int64_t number) {
    return m.Tensor(number, kInt32, {b, 1, s.table_blocks, 1},
                    {s.table_blocks, s.table_blocks, 1, 1});
  };
  const Value tokens = lengths(kTokens), contexts = lengths(kContexts);
  const Value q = rows(kQ, s.q_token, begins(kQBegins));
  const Value out = rows(kOut, s.out_token, begins(kOutBegins));
  const Value least = m.Scalar(kLeast);

  const Value k_columns =
      m.Virtual(type, {b, s.kv_heads, d, keys}, {s.kv_heads * keys * d, keys * d, 1, d});
  m.LoadPages(pages(kK), tables(kKTables), contexts, k_columns);
  const Value products = m.Virtual(kF32, {b, s.q_heads, s.most_tokens, keys});
  m.Matmul(q, k_columns, products, tokens, contexts, false);
  Value scores = m.Pointwise(kMul, kF32, kF32, products, m.Scalar(kScale));

  // Rows and columns that there are.
  const auto index = [&](int64_t axis, int math) {
    return m.Pointwise(kIndex, kInt32, math, scores, {}, {}, axis);
  };
  const Value row = index(2, kInt32), column = index(3, kInt32);
  const Value in_rows = m.Pointwise(kLess, kBool, kBool, row, tokens);
  const Value in_columns = m.Pointwise(kLess, kBool, kBool, column, contexts);
  const Value there = m.Pointwise(kAnd, kBool, kBool, in_rows, in_columns);
  scores = m.Pointwise(kSelect, kF32, kF32, scores, least, there);

  // And no key after the row's own.
  const Value from = index(2, kF32), key = index(3, kF32);
  const Value last =
      m.Pointwise(kSub, kInt32, kInt32, m.Pointwise(kAdd, kInt32, kInt32, from, contexts, {}, 3),
                  tokens, {}, 3);
  const Value seen = m.Pointwise(kGreaterEqual, kBool, kBool, last, key);
  scores = m.Pointwise(kSelect, kF32, kF32, scores, least, seen);

  const Value top = m.Reduce(kMaxOf, scores);
  const Value powers = m.Pointwise(kExp, kF32, kF32, m.Pointwise(kSub, kF32, kF32, scores, top));
  const Value sum = m.Reduce(kSumOf, powers);
  // Nothing reads it, but the engines know no softmax without.
  m.Pointwise(kAdd, kF32, kF32, top, m.Pointwise(kLog, kF32, kF32, sum));
  const Value weights = m.Pointwise(kDiv, type, kF32, powers, sum);

  const Value v_rows =
      m.Virtual(type, {b, s.kv_heads, keys, d}, {s.kv_heads * keys * d, keys * d, d, 1});
  m.LoadPages(pages(kV), tables(kVTables), contexts, v_rows);
  m.Matmul(weights, v_rows, out, tokens, contexts, true);
}

class Cudnn final : public Sdpa {
 public:
  static std::unique_ptr<Sdpa> Open() {
    std::unique_ptr<Cudnn> cudnn(new Cudnn);
    if (!Load(&cudnn->l_) || cudnn->l_.create(&cudnn->handle_) != kOk) return nullptr;
    return cudnn;
  }
  ~Cudnn() override {
    for (auto& [shape, plan] : plans_) {
      if (plan.plan != nullptr) l_.unmake(plan.plan);
    }
    if (handle_ != nullptr) l_.destroy(handle_);
  }

  bool Knows(const SdpaShape& shape) const override { return plans_.contains(shape); }

  int64_t WorkspaceBytes(const SdpaShape& shape) override {
    const Plan& plan = PlanOf(shape);
    return plan.plan == nullptr ? -1 : plan.workspace_bytes;
  }

  std::string Run(gpu::Stream stream, const SdpaShape& shape, const SdpaCall& c) override {
    const Plan& plan = PlanOf(shape);
    if (plan.plan == nullptr) return "no engine of cuDNN takes this shape";
    float scale = c.scale, least = -INFINITY;
    const std::array<int64_t, 12> numbers{kQ,       kK,         kV,      kOut,
                                          kKTables, kVTables,   kTokens, kContexts,
                                          kQBegins, kOutBegins, kScale,  kLeast};
    const std::array<const void*, 12> pointers{c.q,        c.k,          c.v,      c.out,
                                               c.tables,   c.tables,     c.tokens, c.contexts,
                                               c.q_begins, c.out_begins, &scale,   &least};
    Maker m(l_);
    const Descriptor pack = m.Make(kVariantPack);
    m.SetAll(pack, 1000, kTypeInt64, numbers.size(), numbers.data());
    m.SetAll(pack, 1001, kTypePointer, pointers.size(), pointers.data());
    m.Set(pack, 1003, kTypePointer, c.workspace);
    m.Finalize(pack);
    Status status = m.status();
    if (status == kOk) status = l_.set_stream(handle_, stream);
    if (status == kOk) status = l_.execute(handle_, plan.plan, pack);
    return status == kOk ? "" : "cudnnBackendExecute: status " + std::to_string(status);
  }

 private:
  struct Plan {
    Descriptor plan = nullptr;
    int64_t workspace_bytes = 0;
  };

  const Plan& PlanOf(const SdpaShape& shape) {
    auto found = plans_.find(shape);
    if (found == plans_.end()) found = plans_.emplace(shape, MakePlan(shape)).first;
    return found->second;
  }

  // Of the first of the library's choices that it can carry out.
  Plan MakePlan(const SdpaShape& shape) {
    Maker m(l_);
    MakeAttention(m, shape);
    const Descriptor graph = m.Make(kGraph);
    m.SetAll(graph, 801, kTypeDescriptor, std::ssize(m.ops()), m.ops().data());
    m.Set(graph, 800, kTypeHandle, handle_);
    m.Finalize(graph);
    const Descriptor heuristic = m.Make(kHeuristic);
    m.Set(heuristic, 201, kTypeDescriptor, graph);
    m.Set(heuristic, 200, kTypeHeuristic, kHeuristicA);
    m.Finalize(heuristic);
    if (m.status() != kOk) return {};
    constexpr int kMost = 8;
    std::array<Descriptor, kMost> configs{};
    for (Descriptor& config : configs) config = m.Make(kEngineConfig);
    int64_t count = 0;
    if (l_.get(heuristic, 202, kTypeDescriptor, kMost, &count, configs.data()) != kOk) return {};
    for (int64_t i = 0; i < std::min<int64_t>(count, kMost); ++i) {
      Plan plan;
      if (l_.make(kPlan, &plan.plan) != kOk) return {};
      int64_t read = 0;
      if (l_.set(plan.plan, 400, kTypeHandle, 1, &handle_) == kOk &&
          l_.set(plan.plan, 401, kTypeDescriptor, 1, &configs[static_cast<size_t>(i)]) == kOk &&
          l_.finalize(plan.plan) == kOk &&
          l_.get(plan.plan, 402, kTypeInt64, 1, &read, &plan.workspace_bytes) == kOk) {
        return plan;
      }
      l_.unmake(plan.plan);
    }
    return {};
  }

  Library l_{};
  Handle handle_ = nullptr;
  std::map<SdpaShape, Plan> plans_;
};

}  // namespace

std::unique_ptr<Sdpa> OpenSdpa() { return Cudnn::Open(); }

}  // namespace ashlar::gpu_kernels
