// cuBLASLt, found at run time: prototypes of the few functions that are used stand here, so neither
// its headers nor the library are needed to build. The choice of algorithm is asked for once a
// shape and kept.
#include <dlfcn.h>

#include <array>
#include <map>

#include "gpu/gpu.h"
#include "gpu/platform.h"

namespace ashlar::gpu_kernels {
namespace {

// Values and layouts of the library's C interface, the same in its versions 12 and 13.
using Handle = void*;
using Status = int;
constexpr Status kOk = 0;
constexpr int kComputeF32 = 68;
constexpr int kF32 = 0, kF16 = 2, kBF16 = 14;
constexpr int kTransA = 3;                              // attribute of a product
constexpr int kMaxWorkspaceBytes = 1;                   // attributes of a preference
constexpr int kFirstAlignment = 5, kLastAlignment = 8;  // of A, B, C and D in bytes
constexpr int32_t kTranspose = 1;
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};

struct Library {
  Status (*create)(Handle*);
  Status (*destroy)(Handle);
  Status (*product_create)(void**, int compute, int scale_type);
  Status (*product_set)(void*, int attribute, const void*, size_t);
  Status (*product_destroy)(void*);
  Status (*layout_create)(void**, int type, uint64_t rows, uint64_t cols, int64_t pitch);
  Status (*layout_destroy)(void*);
  Status (*preference_create)(void**);
  Status (*preference_set)(void*, int attribute, const void*, size_t);
  Status (*preference_destroy)(void*);
  Status (*heuristic)(Handle, void* product, void* a, void* b, void* c, void* d, void* preference,
                      int wanted, Heuristic*, int* found);
  Status (*matmul)(Handle, void* product, const void* alpha, const void* a, void* a_layout,
                   const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                   void* d, void* d_layout, const Algorithm*, void* workspace, size_t bytes,
                   gpu::Stream);
};

bool Find(void* library, const char* name, void* function) {
  void* symbol = dlsym(library, name);
  *static_cast<void**>(function) = symbol;
  return symbol != nullptr;
}

bool Load(Library* out) {
  void* library = nullptr;
  for (const char* name :
       {"libcublasLt.so.13", "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.13"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  return library != nullptr && Find(library, "cublasLtCreate", &out->create) &&
         Find(library, "cublasLtDestroy", &out->destroy) &&
         Find(library, "cublasLtMatmulDescCreate", &out->product_create) &&
         Find(library, "cublasLtMatmulDescSetAttribute", &out->product_set) &&
         Find(library, "cublasLtMatmulDescDestroy", &out->product_destroy) &&
         Find(library, "cublasLtMatrixLayoutCreate", &out->layout_create) &&
         Find(library, "cublasLtMatrixLayoutDestroy", &out->layout_destroy) &&
         Find(library, "cublasLtMatmulPreferenceCreate", &out->preference_create) &&
         Find(library, "cublasLtMatmulPreferenceSetAttribute", &out->preference_set) &&
         Find(library, "cublasLtMatmulPreferenceDestroy", &out->preference_destroy) &&
         Find(library, "cublasLtMatmulAlgoGetHeuristic", &out->heuristic) &&
         Find(library, "cublasLtMatmul", &out->matmul);
}

int TypeOf(ashlar_dtype dtype) {
  return dtype == ASHLAR_F32 ? kF32 : dtype == ASHLAR_F16 ? kF16 : kBF16;
}

// The library counts columns first: its D [n, m] = A^T B with A = weight [k, n], B = x [k, m].
class CublasLt final : public Blas {
 public:
  static std::unique_ptr<Blas> Open() {
    std::unique_ptr<CublasLt> blas(new CublasLt);
    if (!Load(&blas->library_)) return nullptr;
    if (blas->library_.create(&blas->handle_) != kOk) return nullptr;
    if (gpu::Alloc(&blas->workspace_, kWorkspaceBytes) != gpu::kSuccess) return nullptr;
    return blas;
  }

  ~CublasLt() override {
    for (auto& [key, plan] : plans_) Destroy(plan);
    if (workspace_ != nullptr) (void)gpu::Free(workspace_);
    if (handle_ != nullptr) library_.destroy(handle_);
  }

  std::string Matmul(gpu::Stream stream, const BlasMatmul& m) override {
    for (const void* matrix : {m.x, m.weight, static_cast<const void*>(m.out)}) {
      if (reinterpret_cast<uintptr_t>(matrix) % kAlignment != 0) return "a matrix is not aligned";
    }
    const Key key = {m.type, m.out_type, m.m, m.n, m.k, m.x_pitch, m.weight_pitch, m.out_pitch};
    auto found = plans_.find(key);
    if (found == plans_.end()) found = plans_.emplace(key, MakePlan(m)).first;
    const Plan& plan = found->second;
    if (!plan.usable) return "no algorithm for this shape";
    const float one = 1, zero = 0;
    const Status status = library_.matmul(handle_, plan.product, &one, m.weight, plan.a, m.x,
                                          plan.b, &zero, m.out, plan.d, m.out, plan.d,
                                          &plan.algorithm, workspace_, kWorkspaceBytes, stream);
    return status == kOk ? "" : "cublasLtMatmul: status " + std::to_string(status);
  }

 private:
  static constexpr size_t kWorkspaceBytes = 32 << 20;  // what the vendor advises for Hopper
  static constexpr uint32_t kAlignment = 16;           // bytes
  using Key = std::array<int64_t, 8>;
  struct Plan {
    void *product = nullptr, *a = nullptr, *b = nullptr, *d = nullptr;
    Algorithm algorithm{};
    bool usable = false;
  };

  Plan MakePlan(const BlasMatmul& m) {
    Plan plan;
    void* preference = nullptr;
    const auto rows = static_cast<uint64_t>(m.n), tokens = static_cast<uint64_t>(m.m);
    const auto depth = static_cast<uint64_t>(m.k);
    Heuristic heuristic{};
    int found = 0;
    plan.usable =
        library_.product_create(&plan.product, kComputeF32, kF32) == kOk &&
        library_.product_set(plan.product, kTransA, &kTranspose, sizeof kTranspose) == kOk &&
        library_.layout_create(&plan.a, TypeOf(m.type), depth, rows, m.weight_pitch) == kOk &&
        library_.layout_create(&plan.b, TypeOf(m.type), depth, tokens, m.x_pitch) == kOk &&
        library_.layout_create(&plan.d, TypeOf(m.out_type), rows, tokens, m.out_pitch) == kOk &&
        library_.preference_create(&preference) == kOk &&
        library_.preference_set(preference, kMaxWorkspaceBytes, &kWorkspaceBytes,
                                sizeof kWorkspaceBytes) == kOk &&
        SetAlignment(preference) &&
        library_.heuristic(handle_, plan.product, plan.a, plan.b, plan.d, plan.d, preference, 1,
                           &heuristic, &found) == kOk &&
        found == 1 && heuristic.state == kOk;
    plan.algorithm = heuristic.algorithm;
    if (preference != nullptr) library_.preference_destroy(preference);
    return plan;
  }

  bool SetAlignment(void* preference) {
    for (int attribute = kFirstAlignment; attribute <= kLastAlignment; ++attribute) {
      if (library_.preference_set(preference, attribute, &kAlignment, sizeof kAlignment) != kOk) {
        return false;
      }
    }
    return true;
  }

  void Destroy(Plan& plan) {
    for (void* layout : {plan.a, plan.b, plan.d}) {
      if (layout != nullptr) library_.layout_destroy(layout);
    }
    if (plan.product != nullptr) library_.product_destroy(plan.product);
  }

  Library library_{};
  Handle handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace

std::unique_ptr<Blas> OpenBlas() { return CublasLt::Open(); }

}  // namespace ashlar::gpu_kernels
