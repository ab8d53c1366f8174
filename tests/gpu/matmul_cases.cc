#include "gpu/cases.h"
#include "gpu/number.h"

namespace ashlar::gpu_test {
namespace {

using gpu_kernels::BF16;
using gpu_kernels::F16;

// Random values in a storage type; GGUF's block types are made of random bytes with small scales.
std::vector<uint8_t> RandomBytes(ashlar_dtype dtype, int64_t count, Random& random) {
  std::vector<uint8_t> bytes;
  const auto append = [&](const void* value, size_t size) {
    const auto* from = static_cast<const uint8_t*>(value);
    bytes.insert(bytes.end(), from, from + size);
  };
  if (dtype == ASHLAR_Q8_0) {
    for (int64_t block = 0; block < count / 32; ++block) {
      const F16 scale = gpu_kernels::Store<F16>(static_cast<float>(random.Int(1, 50)) * 1e-3f);
      append(&scale, sizeof scale);
      for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<uint8_t>(random.Int(0, 255)));
    }
    return bytes;
  }
  for (float value : random.Normals(count)) {
    const BF16 brain = gpu_kernels::Store<BF16>(value);
    const F16 half = gpu_kernels::Store<F16>(value);
    if (dtype == ASHLAR_F32) append(&value, sizeof value);
    if (dtype == ASHLAR_BF16) append(&brain, sizeof brain);
    if (dtype == ASHLAR_F16) append(&half, sizeof half);
  }
  return bytes;
}

struct Problem {
  ashlar_weight_desc desc{};
  std::vector<std::vector<uint8_t>> sources;
  int64_t rows = 0, m = 0;
  std::vector<float> x, bias;
};

std::vector<float> Run(const Side& side, const Problem& p, int64_t first, int64_t count) {
  const int64_t cols = p.desc.cols;
  ashlar_weight* weight = nullptr;
  std::vector<const void*> sources;
  for (const auto& source : p.sources) sources.push_back(source.data());
  side.Must(side.table().weight_create(side.device(), &p.desc, sources.data(), &weight));
  const Array<float> x(side, {p.x.begin() + first * cols, p.x.begin() + (first + count) * cols},
                       false);
  const Array<float> bias(side, p.bias, false);
  const Array<float> out(side, std::vector<float>(static_cast<size_t>(count * p.rows), NAN));
  const ashlar_tensor add =
      p.bias.empty() ? ashlar_tensor{} : Dense(bias.data(), ASHLAR_F32, {p.rows});
  side.Must(side.table().matmul(side.device(), side.stream(),
                                Dense(out.data(), ASHLAR_F32, {count, p.rows}),
                                Dense(x.data(), ASHLAR_F32, {count, cols}), weight, add));
  std::vector<float> got = out.Read();
  side.table().weight_destroy(side.device(), weight);
  return got;
}

double Norm(const std::vector<float>& x, int64_t first, int64_t count) {
  double sum = 0;
  for (int64_t i = first; i < first + count; ++i) {
    sum += double{x[static_cast<size_t>(i)]} * double{x[static_cast<size_t>(i)]};
  }
  return std::sqrt(sum);
}

}  // namespace

// The reference multiplies in double. x may be brought to the weight's 16-bit type, within 2^-9 or
// 2^-12 of each value, and a quantised weight to bfloat16: by Cauchy's inequality a product moves
// by at most that share of |x||w|; |w| is bounded by the deviation that the values were drawn with.
void MatmulCase(const Context& c) {
  Problem p;
  const auto dtype =
      c.random.Pick<ashlar_dtype>({ASHLAR_BF16, ASHLAR_BF16, ASHLAR_F16, ASHLAR_F32, ASHLAR_Q8_0});
  p.desc.parts = static_cast<int32_t>(c.random.Int(1, 3));
  p.desc.cols = dtype == ASHLAR_Q8_0   ? 32 * c.random.Int(1, 20)
                : c.random.Chance(0.5) ? 64 * c.random.Int(1, 12)
                                       : c.random.Int(1, 700);
  p.m = c.random.Chance(0.5) ? c.random.Int(1, 16) : c.random.Int(17, 150);
  for (int32_t i = 0; i < p.desc.parts; ++i) {
    p.desc.dtype[i] = dtype;
    p.desc.rows[i] = c.random.Chance(0.5) ? 16 * c.random.Int(1, 6) : c.random.Int(1, 90);
    p.rows += p.desc.rows[i];
    p.sources.push_back(RandomBytes(dtype, p.desc.rows[i] * p.desc.cols, c.random));
  }
  p.x = c.random.Normals(p.m * p.desc.cols);
  if (c.random.Chance(0.3)) p.bias = c.random.Normals(p.rows);

  const std::vector<float> want = Run(c.reference, p, 0, p.m);
  const double step = dtype == ASHLAR_F32 ? 2e-6 : dtype == ASHLAR_F16 ? 0x1p-11 : 0x1p-7;
  const double deviation = dtype == ASHLAR_Q8_0 ? 2.1 : 1;  // 0.029 * 74, the two roots of means
  std::vector<double> tolerance;
  for (int64_t i = 0; i < p.m; ++i) {
    const double bound = step * Norm(p.x, i * p.desc.cols, p.desc.cols) * deviation *
                             std::sqrt(double(p.desc.cols)) +
                         1e-5;
    tolerance.insert(tolerance.end(), static_cast<size_t>(p.rows), bound);
  }
  const char* names[] = {"matmul f32", "matmul f16", "matmul bf16"};
  const std::string op = dtype == ASHLAR_Q8_0 ? "matmul q8_0" : names[dtype];
  const std::string what = "m " + std::to_string(p.m) + " rows " + std::to_string(p.rows) + " in " +
                           std::to_string(p.desc.parts) + " cols " + std::to_string(p.desc.cols) +
                           (p.bias.empty() ? "" : " bias");
  c.report.Compare(op, what, Run(c.plugin, p, 0, p.m), want, tolerance);
  // In a batch or alone, bit for bit.
  const std::vector<float> together = Run(c.invariant, p, 0, p.m);
  c.report.Compare(op + " invariant", what, together, want, tolerance);
  const int64_t row = c.random.Int(0, p.m - 1);
  const std::vector<float> alone = Run(c.invariant, p, row, 1);
  c.report.Expect(
      std::memcmp(alone.data(), together.data() + row * p.rows, alone.size() * sizeof(float)) == 0,
      op + " alone", what);
}

}  // namespace ashlar::gpu_test
