// cuDNN's graph interface: prototypes of the few functions that are used, and the values of its C
// interface in version 9, stand here, so neither its headers nor the library are needed to build.
// Attributes of a descriptor stand by number where they are set.
#pragma once

#include <dlfcn.h>

#include <array>
#include <optional>
#include <vector>

#include "gpu/gpu.h"

namespace ashlar::gpu_kernels::cudnn {

using Handle = void*;
using Descriptor = void*;
using Status = int;
inline constexpr Status kOk = 0;

// Kinds of descriptors.
inline constexpr int kPointwise = 0, kEngineConfig = 3, kHeuristic = 4, kPlan = 5,
                     kPointwiseOp = 13, kGraph = 15, kVariantPack = 16, kTensor = 17, kMatmul = 18,
                     kMatmulOp = 19, kReduction = 21, kReductionOp = 22, kPagedLoadOp = 35;
// Types of attributes.
inline constexpr int kTypeHandle = 0, kTypeData = 1, kTypeBool = 2, kTypeInt64 = 3,
                     kTypePointer = 6, kTypeHeuristic = 8, kTypePointwise = 14,
                     kTypeDescriptor = 15, kTypeReduction = 18;
// Types of elements.
inline constexpr int kF32 = 0, kF16 = 2, kInt32 = 4, kBF16 = 9, kBool = 11;
// What a pointwise operation does; two reductions.
inline constexpr int kAdd = 0, kMul = 1, kDiv = 6, kSub = 9, kExp = 13, kLog = 15,
                     kGreaterEqual = 303, kLess = 304, kAnd = 400, kIndex = 501, kSelect = 601;
inline constexpr int kSumOf = 0, kMaxOf = 3;
inline constexpr int kHeuristicA = 3;

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

// False when there is none here.
inline bool Load(Library* out) {
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

inline constexpr int64_t kFirstVirtual = 100;  // number of a tensor that no call brings

using Dims = std::array<int64_t, 4>;
inline Dims Packed(const Dims& dims) {
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

}  // namespace ashlar::gpu_kernels::cudnn
