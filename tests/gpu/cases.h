// What a conformance case is made of: two sides of the same C table, arrays on them, comparison.
#pragma once

#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ashlar_plugin.h"

namespace ashlar::gpu_test {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t Int(int64_t low, int64_t high) {  // both included
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  bool Chance(double p) { return std::uniform_real_distribution<double>()(engine_) < p; }
  template <class T>
  T Pick(std::initializer_list<T> values) {
    return values.begin()[Int(0, static_cast<int64_t>(values.size()) - 1)];
  }
  std::vector<float> Normals(int64_t count, double deviation = 1) {
    std::normal_distribution<double> normal(0, deviation);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(normal(engine_));
    return values;
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

// One plugin with its device and stream. Failures of the C table end the program: every call here
// is meant to succeed.
class Side {
 public:
  Side(const char* path, bool invariant) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) Die(dlerror());
    auto symbol = reinterpret_cast<ashlar_plugin_table_fn>(dlsym(handle, ASHLAR_PLUGIN_SYMBOL));
    if (symbol == nullptr) Die("no table");
    table_ = symbol();
    if (table_->abi != ASHLAR_PLUGIN_ABI) Die("another ABI");
    ashlar_probe probe{};
    table_->probe(&probe);
    if (probe.outcome != 0) {
      std::printf("%s: no device: outcome %d, %s\n", path, probe.outcome, probe.detail);
      return;
    }
    const ashlar_open open{0, 0, invariant ? 1 : 0};
    Must(table_->open(&open, &device_));
    if (table_->stream_create != nullptr) Must(table_->stream_create(device_, &stream_));
  }
  Side(const Side&) = delete;
  ~Side() {
    if (device_ == nullptr) return;
    if (stream_ != nullptr) table_->stream_destroy(device_, stream_);
    table_->close(device_);
  }

  bool Ready() const { return device_ != nullptr; }
  const ashlar_plugin& table() const { return *table_; }
  ashlar_device* device() const { return device_; }
  ashlar_stream* stream() const { return stream_; }
  bool is_reference() const { return std::strcmp(table_->name, "reference") == 0; }

  void Must(int code) const {
    if (code != ASHLAR_OK) Die(table_->last_error());
  }
  void Sync() const {
    if (stream_ != nullptr) Must(table_->stream_sync(device_, stream_));
  }

 private:
  [[noreturn]] static void Die(const char* why) {
    std::fprintf(stderr, "conformance: %s\n", why);
    std::exit(1);
  }

  const ashlar_plugin* table_ = nullptr;
  ashlar_device* device_ = nullptr;
  ashlar_stream* stream_ = nullptr;
};

// An array in device memory between guard zones, which Read checks. It ends where its allocation
// ends when `back_guard` is false, so that a memory checker sees reads past it.
template <class T>
class Array {
 public:
  Array(const Side& side, std::vector<T> values, bool back_guard = true)
      : side_(side), count_(values.size()) {
    const size_t back = back_guard ? kGuard : 0;
    bytes_.assign(kGuard + count_ * sizeof(T) + back, 0xff);
    if (count_ > 0) std::memcpy(bytes_.data() + kGuard, values.data(), count_ * sizeof(T));
    side_.Must(side_.table().alloc(side_.device(), size(), &memory_));
    side_.Must(
        side_.table().copy_in(side_.device(), side_.stream(), memory_, bytes_.data(), size()));
    side_.Sync();
  }
  Array(const Array&) = delete;
  ~Array() { side_.table().release(side_.device(), memory_); }

  T* data() const { return reinterpret_cast<T*>(static_cast<char*>(memory_) + kGuard); }

  std::vector<T> Read() const {
    std::vector<unsigned char> now(bytes_.size());
    side_.Sync();
    side_.Must(side_.table().copy_out(side_.device(), side_.stream(), now.data(), memory_, size()));
    side_.Sync();
    for (size_t i = 0; i < now.size(); ++i) {
      const bool inside = i >= kGuard && i < kGuard + count_ * sizeof(T);
      if (inside || now[i] == 0xff) continue;
      std::fprintf(stderr, "conformance: byte %zu outside an array of %zu was written\n", i,
                   count_ * sizeof(T));
      std::exit(1);
    }
    std::vector<T> values(count_);
    if (count_ > 0) std::memcpy(values.data(), now.data() + kGuard, count_ * sizeof(T));
    return values;
  }

 private:
  static constexpr size_t kGuard = 64;
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }

  const Side& side_;
  size_t count_;
  std::vector<unsigned char> bytes_;
  void* memory_ = nullptr;
};

inline ashlar_tensor Dense(void* data, ashlar_dtype dtype, std::vector<int64_t> shape) {
  ashlar_tensor t{};
  t.data = data;
  t.dtype = dtype;
  t.rank = static_cast<int32_t>(shape.size());
  int64_t stride = dtype == ASHLAR_F32 ? 4 : 2;
  for (int i = t.rank - 1; i >= 0; --i) {
    t.shape[i] = shape[static_cast<size_t>(i)];
    t.stride[i] = stride;
    stride *= t.shape[i];
  }
  return t;
}

// The worst error of each op as a share of its tolerance.
struct Report {
  struct Use {
    double share = 0;
    int64_t values = 0;
  };
  std::map<std::string, Use> uses;
  int failures = 0;

  void Compare(const std::string& op, const std::string& what, const std::vector<float>& got,
               const std::vector<float>& want, const std::vector<double>& tolerance) {
    size_t worst = 0, wrong = 0;
    double worst_share = -1;
    for (size_t i = 0; i < want.size(); ++i) {
      const double error = std::fabs(double{got[i]} - double{want[i]});
      double share = error == 0 ? 0 : error / tolerance[i];
      if (std::isnan(share)) share = INFINITY;
      if (share > 1) ++wrong;
      if (share > worst_share) worst_share = share, worst = i;
    }
    Use& use = uses[op];
    use.share = std::max(use.share, worst_share);
    use.values += static_cast<int64_t>(want.size());
    if (wrong == 0 && got.size() == want.size()) return;
    ++failures;
    std::printf("FAILED %s %s: %zu of %zu values; worst at %zu: %g instead of %g, tolerance %g\n",
                op.c_str(), what.c_str(), wrong, want.size(), worst, double{got[worst]},
                double{want[worst]}, tolerance[worst]);
  }
  void Expect(bool holds, const std::string& op, const std::string& what) {
    ++uses[op].values;
    if (holds) return;
    ++failures;
    std::printf("FAILED %s %s\n", op.c_str(), what.c_str());
  }
  void Print() const {
    std::printf("%-28s%14s%28s\n", "op", "values", "worst error / tolerance");
    for (const auto& [op, use] : uses) {
      std::printf("%-28s%14lld%28.3g\n", op.c_str(), static_cast<long long>(use.values), use.share);
    }
    std::printf("%d failures\n", failures);
  }
};

// Where a case runs: the reference, the plugin, and the plugin opened for batch-invariant work.
struct Context {
  const Side &reference, &plugin, &invariant;
  Random& random;
  Report& report;
  const char* op;
  bool large;  // shapes that a device's blocks share, which take the host executor minutes
};

struct Case {
  const char* name;
  void (*run)(const Context& context);
  bool slow = false;  // on the host executor, which has a third of its rounds
};

void EmbedCase(const Context& c);
void GatherCase(const Context& c);
void NormCase(const Context& c);
void MatmulCase(const Context& c);
void Float8Case(const Context& c);
void ProjectCase(const Context& c);
void QkvCase(const Context& c);
void AttentionCase(const Context& c);
void StepCase(const Context& c);
void LayersCase(const Context& c);
void PrefillCase(const Context& c);
void ActivationCase(const Context& c);
void AddCase(const Context& c);
void CopyBlocksCase(const Context& c);
void SampleCase(const Context& c);
void ResolveCase(const Context& c);

inline constexpr Case kCases[] = {
    {"embed", EmbedCase},     {"gather", GatherCase},
    {"norm", NormCase},       {"matmul", MatmulCase},
    {"float8", Float8Case},   {"project", ProjectCase},
    {"qkv_prepare", QkvCase}, {"attention", AttentionCase},
    {"step", StepCase},       {"layers", LayersCase, true},
    {"prefill", PrefillCase}, {"activation", ActivationCase},
    {"add", AddCase},         {"copy_blocks", CopyBlocksCase},
    {"sample", SampleCase},   {"resolve_ids", ResolveCase},
};

}  // namespace ashlar::gpu_test
