// cuDNN by its graph interface: prototypes of the few functions that are used, and the values of
// its C interface in version 9, stand here, so neither its headers nor the library are needed to
// build. The operations of a graph are in the order and form that its attention engines know.
#include "cudnn.h"

#include <dlfcn.h>

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

namespace ashlar::gpu_kernels {
namespace {

using Handle = void*;
using Descriptor = void*;
using Status = int;
constexpr Status kOk = 0;

// Kinds of descriptors.
constexpr int kPointwise = 0, kEngineConfig = 3, kHeuristic = 4, kPlan = 5, kPointwiseOp = 13,
              kGraph = 15, kVariantPack = 16, kTensor = 17, kMatmul = 18, kMatmulOp = 19,
              kReduction = 21, kReductionOp = 22, kPagedLoadOp = 35;
// Types of attributes.
constexpr int kTypeHandle = 0, kTypeData = 1, kTypeBool = 2, kTypeInt64 = 3, kTypePointer = 6,
              kTypeHeuristic = 8, kTypePointwise = 14, kTypeDescriptor = 15, kTypeReduction = 18;
// Types of elements.
constexpr int kF32 = 0, kF16 = 2, kInt32 = 4, kBF16 = 9, kBool = 11;
// What a pointwise operation does; two reductions.
constexpr int kAdd = 0, kMul = 1, kDiv = 6, kSub = 9, kExp = 13, kLog = 15, kGreaterEqual = 303,
              kLess = 304, kAnd = 400, kIndex = 501, kSelect = 601;
constexpr int kSumOf = 0, kMaxOf = 3;
constexpr int kHeuristicA = 3;

struct Library {
  Status (*create)(Handle*);
  Status (*destroy)(Handle);
  Status (*set_stream)(Handle, gpu::Stream);
  Status (*make)(int kind, Descriptor*);
  Status (*unmake)(Descriptor);
  Status (*set)(Descriptor, int attribute, int type, int64_t count, const void*);
  Status (*get)(Descriptor, int attribute, int type, int64_t wanted, int64_t* count, void*);
  Status (*finalize)(Descriptor);
  Status (*execute)(Handle, Descriptor plan, Descriptor pack);
};

bool Load(Library* out) {
  void* library = nullptr;
  for (const char* name : {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) return false;
  const auto find = [&](const char* name, auto* function) {
    *reinterpret_cast<void**>(function) = dlsym(library, name);
    return *function != nullptr;
  };
  return find("cudnnCreate", &out->create) && find("cudnnDestroy", &out->destroy) &&
         find("cudnnSetStream", &out->set_stream) &&
         find("cudnnBackendCreateDescriptor", &out->make) &&
         find("cudnnBackendDestroyDescriptor", &out->unmake) &&
         find("cudnnBackendSetAttribute", &out->set) &&
         find("cudnnBackendGetAttribute", &out->get) &&
         find("cudnnBackendFinalize", &out->finalize) && find("cudnnBackendExecute", &out->execute);
}

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
constexpr int64_t kFirstVirtual = 100;

using Dims = std::array<int64_t, 4>;
Dims Packed(const Dims& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

// A graph of operations while it is made. What goes wrong once is what it is in the end.
class Maker {
 public:
  explicit Maker(const Library& library) : l_(library) {}
  Maker(const Maker&) = delete;
  ~Maker() {
    for (Descriptor each : made_) l_.unmake(each);
  }
  Status status() const { return status_; }
  const std::vector<Descriptor>& ops() const { return ops_; }

  struct Value {
    Descriptor tensor;
    Dims dims;
  };

  Value Tensor(int64_t number, int type, const Dims& dims, const Dims& strides,
               std::optional<Value> begins = {}) {
    return MakeTensor(number, type, dims, strides, false, false, begins);
  }
  // A scalar that the host brings.
  Value Scalar(int64_t number) {
    return MakeTensor(number, kF32, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true, {});
  }
  Value Virtual(int type, const Dims& dims, const Dims& strides) {
    return MakeTensor(next_++, type, dims, strides, true, false, {});
  }
  Value Virtual(int type, const Dims& dims) { return Virtual(type, dims, Packed(dims)); }

  // out [type] = x of the mode with `b`, and for kSelect where `t`; computed in `math`.
  Value Pointwise(int mode, int type, int math, const Value& x, std::optional<Value> b = {},
                  std::optional<Value> t = {}, int64_t axis = -1) {
    const Value out = Virtual(type, x.dims);
    const Descriptor what = Make(kPointwise);
    Set(what, 0, kTypePointwise, mode);
    Set(what, 1, kTypeData, math);
    if (axis >= 0) Set(what, 9, kTypeInt64, axis);
    Finalize(what);
    const Descriptor op = Make(kPointwiseOp);
    Set(op, 750, kTypeDescriptor, what);
    Set(op, 751, kTypeDescriptor, x.tensor);
    if (b) Set(op, 752, kTypeDescriptor, b->tensor);
    if (t) Set(op, 758, kTypeDescriptor, t->tensor);
    Set(op, 753, kTypeDescriptor, out.tensor);
    Add(op);
    return out;
  }
  // Over the last dimension.
  Value Reduce(int reduction, const Value& x) {
    const Value out = Virtual(kF32, {x.dims[0], x.dims[1], x.dims[2], 1});
    const Descriptor what = Make(kReduction);
    Set(what, 1600, kTypeReduction, reduction);
    Set(what, 1601, kTypeData, kF32);
    Finalize(what);
    const Descriptor op = Make(kReductionOp);
    Set(op, 1610, kTypeDescriptor, x.tensor);
    Set(op, 1611, kTypeDescriptor, out.tensor);
    Set(op, 1612, kTypeDescriptor, what);
    Add(op);
    return out;
  }
  // out = a b, of which only so many rows, and columns or (of_k) what is summed up, are meant.
  void Matmul(const Value& a, const Value& b, const Value& out, const Value& rows,
              const Value& others, bool of_k) {
    const Descriptor what = Make(kMatmul);
    Set(what, 1500, kTypeData, kF32);
    if (!of_k) {
      const double padding = 0;
      SetAll(what, 1503, 5, 1, &padding);
    }
    Finalize(what);
    const Descriptor op = Make(kMatmulOp);
    Set(op, 1520, kTypeDescriptor, a.tensor);
    Set(op, 1521, kTypeDescriptor, b.tensor);
    Set(op, 1522, kTypeDescriptor, out.tensor);
    Set(op, 1523, kTypeDescriptor, what);
    Set(op, 1525, kTypeDescriptor, rows.tensor);
    Set(op, of_k ? 1527 : 1526, kTypeDescriptor, others.tensor);
    Add(op);
  }
  void LoadPages(const Value& pages, const Value& tables, const Value& lengths, const Value& out) {
    const Descriptor op = Make(kPagedLoadOp);
    Set(op, 1950, kTypeDescriptor, pages.tensor);
    Set(op, 1951, kTypeDescriptor, out.tensor);
    Set(op, 1952, kTypeDescriptor, lengths.tensor);
    Set(op, 1953, kTypeDescriptor, tables.tensor);
    Add(op);
  }

  Descriptor Make(int kind) {
    Descriptor made = nullptr;
    Note(l_.make(kind, &made));
    if (made != nullptr) made_.push_back(made);
    return made;
  }
  template <class T>
  void Set(Descriptor of, int attribute, int type, const T& value) {
    SetAll(of, attribute, type, 1, &value);
  }
  void SetAll(Descriptor of, int attribute, int type, int64_t count, const void* values) {
    if (status_ == kOk) Note(l_.set(of, attribute, type, count, values));
  }
  void Finalize(Descriptor made) {
    if (status_ == kOk) Note(l_.finalize(made));
  }

 private:
  void Note(Status status) {
    if (status_ == kOk) status_ = status;
  }
  void Add(Descriptor op) {
    Finalize(op);
    ops_.push_back(op);
  }
  Value MakeTensor(int64_t number, int type, const Dims& dims, const Dims& strides, bool is_virtual,
                   bool by_value, std::optional<Value> begins) {
    const Descriptor tensor = Make(kTensor);
    Set(tensor, 901, kTypeData, type);
    SetAll(tensor, 902, kTypeInt64, 4, dims.data());
    SetAll(tensor, 903, kTypeInt64, 4, strides.data());
    Set(tensor, 906, kTypeInt64, number);
    Set(tensor, 900, kTypeInt64, int64_t{16});
    if (is_virtual) Set(tensor, 907, kTypeBool, true);
    if (by_value) Set(tensor, 908, kTypeBool, true);
    if (begins) Set(tensor, 913, kTypeDescriptor, begins->tensor);
    Finalize(tensor);
    return {tensor, dims};
  }

  const Library& l_;
  Status status_ = kOk;
  int64_t next_ = kFirstVirtual;
  std::vector<Descriptor> made_, ops_;
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
