// cuBLASLt, found at run time: prototypes of the few functions that are used stand here, so neither
// its headers nor the library are needed to build. Its own first choice of an algorithm is often
// not its best and takes it a millisecond: one is chosen by a trial of several, for shapes of about
// as many tokens together.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/platform.h"

namespace ashlar::gpu_kernels {
namespace {

// Values and layouts of the library's C interface, the same in its versions 12 and 13.
using Handle = void*;
using Status = int;
constexpr Status kOk = 0;
constexpr int kComputeF32 = 68;
constexpr int kF32 = 0, kF16 = 2, kBF16 = 14, kF8 = 28;
constexpr int kTransA = 3;  // attributes of a product
constexpr int kAScales = 17, kBScales = 18, kFastSums = 25, kAScaleMode = 31, kBScaleMode = 32;
constexpr int32_t kScaleARow = 3;                       // a scale for each row of A, column of B
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
  Status (*check)(Handle, void* product, void* a, void* b, void* c, void* d, const Algorithm*,
                  Heuristic*);
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
         Find(library, "cublasLtMatmulAlgoCheck", &out->check) &&
         Find(library, "cublasLtMatmul", &out->matmul);
}

int TypeOf(ashlar_dtype dtype) {
  if (dtype == ASHLAR_F8_E4M3) return kF8;
  return dtype == ASHLAR_F32 ? kF32 : dtype == ASHLAR_F16 ? kF16 : kBF16;
}

// Memory and marks that a trial needs; nothing is there when the device has no room.
class Trial {
 public:
  explicit Trial(size_t out_bytes) : out_bytes_(out_bytes) {
    ready_ = gpu::Alloc(&memory_, kL2Bytes + out_bytes) == gpu::kSuccess &&
             gpu::CreateEvent(&begin_) == gpu::kSuccess && gpu::CreateEvent(&end_) == gpu::kSuccess;
  }
  Trial(const Trial&) = delete;
  ~Trial() {
    if (memory_ != nullptr) (void)gpu::Free(memory_);
    if (begin_ != nullptr) (void)gpu::DestroyEvent(begin_);
    if (end_ != nullptr) (void)gpu::DestroyEvent(end_);
  }
  bool ready() const { return ready_; }
  void* out() const { return static_cast<char*>(memory_) + kL2Bytes; }

  // The least milliseconds of a few runs, each with nothing left in the L2; infinite when one
  // fails.
  template <class Run>
  float Time(gpu::Stream stream, Run run) const {
    float best = INFINITY;
    for (int i = 0; i < kRuns; ++i) {
      float took = 0;
      if (gpu::Zero(memory_, kL2Bytes + out_bytes_, stream) != gpu::kSuccess ||
          gpu::Record(begin_, stream) != gpu::kSuccess || run() != kOk ||
          gpu::Record(end_, stream) != gpu::kSuccess || gpu::Wait(end_) != gpu::kSuccess ||
          gpu::Elapsed(&took, begin_, end_) != gpu::kSuccess) {
        return INFINITY;
      }
      if (i > 0) best = std::min(best, took);  // the first one loads the kernel
    }
    return best;
  }

 private:
  static constexpr size_t kL2Bytes = 128 << 20;  // more than any device's
  static constexpr int kRuns = 3;
  size_t out_bytes_;
  void* memory_ = nullptr;
  gpu::Event begin_ = nullptr, end_ = nullptr;
  bool ready_ = false;
};

// The library counts columns first: its D [n, m] = A^T B + C with A = weight [k, n], B = x [k, m].
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
    for (const void* matrix : {m.x, m.weight, static_cast<const void*>(m.out), m.residual}) {
      if (reinterpret_cast<uintptr_t>(matrix) % kAlignment != 0) return "a matrix is not aligned";
    }
    const Key key = {m.type,
                     m.out_type,
                     m.m,
                     m.n,
                     m.k,
                     m.x_pitch,
                     m.weight_pitch,
                     m.out_pitch,
                     m.residual == nullptr ? -1 : m.residual_pitch};
    auto found = plans_.find(key);
    if (found == plans_.end()) found = plans_.emplace(key, MakePlan(m)).first;
    Plan& plan = found->second;
    if (m.type == ASHLAR_F8_E4M3 &&
        (library_.product_set(plan.product, kAScales, &m.weight_scales, sizeof(float*)) != kOk ||
         library_.product_set(plan.product, kBScales, &m.x_scales, sizeof(float*)) != kOk)) {
      return "no scales in this library";
    }
    if (!plan.settled) Settle(stream, m, plan);
    if (!plan.algorithm) return "no algorithm for this shape";
    const Status status = Run(stream, m, plan, *plan.algorithm, m.residual, m.out);
    return status == kOk ? "" : "cublasLtMatmul: status " + std::to_string(status);
  }

 private:
  static constexpr size_t kWorkspaceBytes = 32 << 20;  // what the vendor advises for Hopper
  static constexpr uint32_t kAlignment = 16;           // bytes
  static constexpr int64_t kFew = 512;  // tokens; up to them eight algorithms are tried, else four
  using Key = std::array<int64_t, 9>;
  struct Plan {
    void *product = nullptr, *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
    std::optional<Algorithm> algorithm;
    bool settled = false;  // nothing better will be looked for
  };

  Status Run(gpu::Stream stream, const BlasMatmul& m, const Plan& plan, const Algorithm& algorithm,
             const void* residual, void* out) {
    const float one = 1, beta = residual == nullptr ? 0 : 1;
    return library_.matmul(handle_, plan.product, &one, m.weight, plan.a, m.x, plan.b, &beta,
                           residual == nullptr ? out : residual, plan.c, out, plan.d, &algorithm,
                           workspace_, kWorkspaceBytes, stream);
  }

  // A plan without an algorithm.
  Plan MakePlan(const BlasMatmul& m) {
    Plan plan;
    const auto rows = static_cast<uint64_t>(m.n), tokens = static_cast<uint64_t>(m.m);
    const auto depth = static_cast<uint64_t>(m.k);
    const int64_t residual_pitch = m.residual == nullptr ? m.out_pitch : m.residual_pitch;
    const bool made =
        library_.product_create(&plan.product, kComputeF32, kF32) == kOk &&
        library_.product_set(plan.product, kTransA, &kTranspose, sizeof kTranspose) == kOk &&
        (m.type != ASHLAR_F8_E4M3 || SetScales(plan.product, m)) &&
        library_.layout_create(&plan.a, TypeOf(m.type), depth, rows, m.weight_pitch) == kOk &&
        library_.layout_create(&plan.b, TypeOf(m.type), depth, tokens, m.x_pitch) == kOk &&
        library_.layout_create(&plan.c, TypeOf(m.out_type), rows, tokens, residual_pitch) == kOk &&
        library_.layout_create(&plan.d, TypeOf(m.out_type), rows, tokens, m.out_pitch) == kOk;
    plan.settled = !made;
    return plan;
  }

  // The library's choices, best first by its own guess.
  std::vector<Algorithm> Candidates(const Plan& plan, int most) {
    std::vector<Heuristic> heuristics(static_cast<size_t>(most));
    void* preference = nullptr;
    int found = 0;
    if (library_.preference_create(&preference) == kOk &&
        library_.preference_set(preference, kMaxWorkspaceBytes, &kWorkspaceBytes,
                                sizeof kWorkspaceBytes) == kOk &&
        SetAlignment(preference)) {
      (void)library_.heuristic(handle_, plan.product, plan.a, plan.b, plan.c, plan.d, preference,
                               most, heuristics.data(), &found);
    }
    if (preference != nullptr) library_.preference_destroy(preference);
    std::vector<Algorithm> algorithms;
    for (int i = 0; i < found; ++i) {
      const Heuristic& heuristic = heuristics[static_cast<size_t>(i)];
      if (heuristic.state == kOk) algorithms.push_back(heuristic.algorithm);
    }
    return algorithms;
  }

  // The most tokens that share an algorithm with so many: an engine runs a step of as many first
  // (engine/step_runner.cc), while it is idle if it ever is. A kernel whose last tile is partly
  // empty is slow, by up to a third where much of it is.
  static int64_t About(int64_t tokens) {
    if (tokens <= 64) return tokens <= 32 ? 32 : 64;
    const int64_t step = tokens <= 1024 ? 16 : 128;
    return (tokens + step - 1) / step * step;
  }

  // The fastest for this shape and about as many tokens, from a trial made once; the library's
  // first choice where there can be none.
  void Settle(gpu::Stream stream, const BlasMatmul& m, Plan& plan) {
    const Key key = {m.type, m.out_type, About(m.m), m.n, m.k, m.residual == nullptr ? 0 : 1,
                     0,      0,          0};
    auto best = best_.find(key);
    const bool captured = gpu::IsCaptured(stream);
    if (best == best_.end() && !captured) {
      if (const std::optional<Algorithm> algorithm = Try(stream, m, plan)) {
        best = best_.emplace(key, *algorithm).first;
      }
    }
    Heuristic checked{};
    if (best != best_.end() &&
        library_.check(handle_, plan.product, plan.a, plan.b, plan.c, plan.d, &best->second,
                       &checked) == kOk &&
        checked.workspace_bytes <= kWorkspaceBytes) {
      plan.algorithm = best->second;
    } else if (!plan.algorithm) {
      const std::vector<Algorithm> first = Candidates(plan, 1);
      if (!first.empty()) plan.algorithm = first[0];
    }
    plan.settled = !captured || best != best_.end();
  }

  std::optional<Algorithm> Try(gpu::Stream stream, const BlasMatmul& m, const Plan& plan) {
    const Trial trial(static_cast<size_t>(m.m * m.out_pitch * (m.out_type == ASHLAR_F32 ? 4 : 2)));
    if (!trial.ready()) return std::nullopt;
    std::optional<Algorithm> best;
    float least = INFINITY;
    const int candidates = m.m <= kFew ? 8 : 4;
    for (const Algorithm& algorithm : Candidates(plan, candidates)) {
      const void* residual = m.residual == nullptr ? nullptr : trial.out();
      const float took = trial.Time(
          stream, [&] { return Run(stream, m, plan, algorithm, residual, trial.out()); });
      if (took < least) least = took, best = algorithm;
    }
    return best;
  }

  // Which algorithms there are depends on the scales.
  bool SetScales(void* product, const BlasMatmul& m) {
    constexpr int8_t kFast = 1;  // sums within the matrix units, as other engines take them
    return library_.product_set(product, kAScaleMode, &kScaleARow, sizeof kScaleARow) == kOk &&
           library_.product_set(product, kBScaleMode, &kScaleARow, sizeof kScaleARow) == kOk &&
           library_.product_set(product, kAScales, &m.weight_scales, sizeof(float*)) == kOk &&
           library_.product_set(product, kBScales, &m.x_scales, sizeof(float*)) == kOk &&
           library_.product_set(product, kFastSums, &kFast, sizeof kFast) == kOk;
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
    for (void* layout : {plan.a, plan.b, plan.c, plan.d}) {
      if (layout != nullptr) library_.layout_destroy(layout);
    }
    if (plan.product != nullptr) library_.product_destroy(plan.product);
  }

  Library library_{};
  Handle handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Plan> plans_;
  std::map<Key, Algorithm> best_;  // by trial
};

}  // namespace

std::unique_ptr<Blas> OpenBlas() { return CublasLt::Open(); }

}  // namespace ashlar::gpu_kernels
