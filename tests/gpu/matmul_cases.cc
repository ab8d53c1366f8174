#include "gpu/matmul_cases.h"

#include <algorithm>

#include "gpu/number.h"
#include "gpu/stored.h"

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
  RandomWeight weight;
  int64_t m = 0;
  std::vector<float> x, bias;
};

std::vector<float> Run(const Side& side, const Problem& p, int64_t first, int64_t count) {
  const int64_t cols = p.weight.desc.cols, rows = p.weight.rows;
  ashlar_weight* weight = p.weight.Create(side);
  const Array<float> x(side, {p.x.begin() + first * cols, p.x.begin() + (first + count) * cols},
                       false);
  const Array<float> bias(side, p.bias, false);
  const Array<float> out(side, std::vector<float>(static_cast<size_t>(count * rows), NAN));
  const ashlar_tensor add =
      p.bias.empty() ? ashlar_tensor{} : Dense(bias.data(), ASHLAR_F32, {rows});
  side.Must(side.table().matmul(side.device(), side.stream(),
                                Dense(out.data(), ASHLAR_F32, {count, rows}),
                                Dense(x.data(), ASHLAR_F32, {count, cols}), weight, add));
  std::vector<float> got = out.Read();
  side.table().weight_destroy(side.device(), weight);
  return got;
}

}  // namespace

RandomWeight RandomWeight::Make(Random& random, bool halves, bool large) {
  RandomWeight w;
  const auto dtype =
      random.Pick<ashlar_dtype>({ASHLAR_BF16, ASHLAR_BF16, ASHLAR_F16, ASHLAR_F32, ASHLAR_Q8_0});
  const bool huge = large && random.Chance(0.3);
  const bool tall = random.Chance(0.1);           // more rows than a device's blocks take at once
  const bool deep = !tall && random.Chance(0.1);  // more of x than shared memory holds
  const bool narrow = !huge && !tall && !deep && random.Chance(0.2);  // a block's whole share fits
  const bool mixed = dtype != ASHLAR_Q8_0 && random.Chance(0.2);
  w.desc.fp8 = dtype != ASHLAR_Q8_0 && random.Chance(0.3) ? 1 : 0;
  w.desc.parts = static_cast<int32_t>(halves ? random.Int(1, 2) : random.Int(1, 3));
  w.desc.cols = huge                   ? 32 * random.Int(30, 130)
                : narrow               ? 32 * random.Int(33, 190)
                : deep                 ? 32 * random.Int(75, 450)
                : dtype == ASHLAR_Q8_0 ? 32 * random.Int(1, tall ? 4 : 20)
                : tall                 ? 8 * random.Int(1, 20)
                : random.Chance(0.5)   ? 64 * random.Int(1, 12)
                                       : random.Int(1, 700);
  for (int32_t i = 0; i < w.desc.parts; ++i) {
    w.desc.dtype[i] = dtype;
    if (mixed) w.desc.dtype[i] = random.Pick<ashlar_dtype>({ASHLAR_BF16, ASHLAR_F16, ASHLAR_F32});
    w.desc.rows[i] = huge                 ? random.Int(1000, 4000)
                     : tall               ? random.Int(2200, 4000) / w.desc.parts
                     : narrow             ? random.Int(1, 16)
                     : random.Chance(0.5) ? 16 * random.Int(1, 6)
                                          : random.Int(1, 90);
    if (halves) w.desc.rows[i] = w.desc.parts == 1 ? 2 * w.desc.rows[i] : w.desc.rows[0];
    w.rows += w.desc.rows[i];
    w.sources.push_back(RandomBytes(w.desc.dtype[i], w.desc.rows[i] * w.desc.cols, random));
  }
  return w;
}

ashlar_weight* RandomWeight::Create(const Side& side) const {
  std::vector<const void*> from;
  for (const auto& source : sources) from.push_back(source.data());
  ashlar_weight* weight = nullptr;
  side.Must(side.table().weight_create(side.device(), &desc, from.data(), &weight));
  return weight;
}

const char* RandomWeight::Name() const {
  const char* names[] = {"f32", "f16", "bf16"};
  if (desc.fp8 != 0) return "fp8";
  for (int32_t i = 1; i < desc.parts; ++i) {
    if (desc.dtype[i] != desc.dtype[0]) return "mixed";
  }
  return desc.dtype[0] == ASHLAR_Q8_0 ? "q8_0" : names[desc.dtype[0]];
}

int64_t RandomWeight::Tokens(Random& random, bool large) const {
  // The host executor multiplies so many values in a few seconds.
  const int64_t most = large ? 300 : std::max<int64_t>(4, (6 << 20) / (rows * desc.cols));
  if (rows <= 48 && desc.cols > 1024) return random.Int(1, 8);
  const int64_t tokens = random.Chance(0.5)   ? random.Int(1, 16)
                         : random.Chance(0.1) ? random.Int(257, 300)
                         : random.Chance(0.5) ? random.Int(17, 64)
                                              : random.Int(65, large ? 256 : 150);
  return std::min(tokens, most);
}

bool MayNarrowX(const Side& side) { return side.table().name == std::string("cuda"); }

double RandomWeight::Step(bool narrow_x) const {
  if (desc.fp8 != 0 && narrow_x) {
    return 0x1p-4 * std::min(1.0, 3 / std::sqrt(double(desc.cols))) + 0x1p-7;
  }
  if (desc.fp8 != 0) return 0x1p-7;
  double step = 2e-6;
  for (int32_t i = 0; i < desc.parts; ++i) {
    if (desc.dtype[i] == ASHLAR_F32) continue;
    step = std::max(step, desc.dtype[i] == ASHLAR_F16 ? 0x1p-11 : 0x1p-7);
  }
  return step;
}

double RandomWeight::RowNorm() const {
  const double deviation = desc.dtype[0] == ASHLAR_Q8_0 ? 2.1 : 1;  // 0.029 * 74, roots of means
  return deviation * (std::sqrt(double(desc.cols)) + 5);
}

double VectorNorm(const std::vector<float>& x, int64_t first, int64_t count) {
  double sum = 0;
  for (int64_t i = first; i < first + count; ++i) {
    sum += double{x[static_cast<size_t>(i)]} * double{x[static_cast<size_t>(i)]};
  }
  return std::sqrt(sum);
}

// The reference multiplies in double.
void MatmulCase(const Context& c) {
  Problem p;
  p.weight = RandomWeight::Make(c.random, false, c.large);
  const int64_t cols = p.weight.desc.cols, rows = p.weight.rows;
  p.m = p.weight.Tokens(c.random, c.large);
  p.x = c.random.Normals(p.m * cols);
  if (c.random.Chance(0.3)) p.bias = c.random.Normals(rows);

  const std::vector<float> want = Run(c.reference, p, 0, p.m);
  const auto tolerance = [&](bool narrow_x) {
    std::vector<double> bounds;
    for (int64_t i = 0; i < p.m; ++i) {
      const double bound =
          p.weight.Step(narrow_x) * VectorNorm(p.x, i * cols, cols) * p.weight.RowNorm() + 1e-5;
      bounds.insert(bounds.end(), static_cast<size_t>(rows), bound);
    }
    return bounds;
  };
  const std::string op = std::string("matmul ") + p.weight.Name();
  const std::string what = "m " + std::to_string(p.m) + " rows " + std::to_string(rows) + " in " +
                           std::to_string(p.weight.desc.parts) + " cols " + std::to_string(cols) +
                           (p.bias.empty() ? "" : " bias");
  c.report.Compare(op, what, Run(c.plugin, p, 0, p.m), want, tolerance(MayNarrowX(c.plugin)));
  // In a batch or alone, bit for bit.
  const std::vector<float> together = Run(c.invariant, p, 0, p.m);
  c.report.Compare(op + " invariant", what, together, want, tolerance(false));
  const int64_t row = c.random.Int(0, p.m - 1);
  const std::vector<float> alone = Run(c.invariant, p, row, 1);
  c.report.Expect(
      std::memcmp(alone.data(), together.data() + row * rows, alone.size() * sizeof(float)) == 0,
      op + " alone", what);
}

// A weight that is brought to float8, bit for bit: products with ones, which batch-invariant
// kernels do not bring to float8 too, read values of it back. A row is damaged, one is nothing.
void Float8Case(const Context& c) {
  constexpr int64_t kRead = 16;  // columns
  const int64_t rows = 16 * c.random.Int(1, 5) + c.random.Int(0, 3);
  const int64_t cols = c.random.Pick({c.random.Int(1, 64), 64 * c.random.Int(1, 50)});
  const auto dtype = c.random.Pick<ashlar_dtype>({ASHLAR_BF16, ASHLAR_F16, ASHLAR_F32});
  const int64_t zero = c.random.Int(0, rows - 1), damaged = (zero + 1) % rows;
  std::vector<float> values = Rounded(dtype, c.random.Normals(rows * cols));
  std::fill_n(values.begin() + zero * cols, cols, 0.0f);
  values[static_cast<size_t>(damaged * cols + c.random.Int(0, cols - 1))] =
      c.random.Pick({NAN, INFINITY, -INFINITY});

  Problem p;
  p.weight.desc.parts = 1, p.weight.desc.dtype[0] = dtype, p.weight.desc.rows[0] = rows;
  p.weight.desc.cols = cols, p.weight.desc.fp8 = 1, p.weight.rows = rows;
  p.weight.sources.emplace_back(values.size() * (dtype == ASHLAR_F32 ? 4 : 2));
  for (int64_t i = 0; i < rows * cols; ++i) {
    gpu_kernels::StoreAs(dtype, p.weight.sources[0].data(), i, values[static_cast<size_t>(i)]);
  }
  p.m = kRead;
  p.x.assign(static_cast<size_t>(kRead * cols), 0.0f);
  std::vector<float> want;  // [kRead, rows]
  for (int64_t i = 0; i < kRead; ++i) {
    const int64_t col = c.random.Int(0, cols - 1);
    p.x[static_cast<size_t>(i * cols + col)] = 1;
    for (int64_t row = 0; row < rows; ++row) {
      float largest = 0;
      for (int64_t k = 0; k < cols; ++k) {
        largest = std::max(largest, std::fabs(values[static_cast<size_t>(row * cols + k)]));
      }
      const float inverse = largest > 0 ? gpu_kernels::kLargestF8 / largest : 0;
      const auto value = gpu_kernels::Store<gpu_kernels::F8>(
          values[static_cast<size_t>(row * cols + col)] * inverse);
      want.push_back(
          row == damaged ? NAN : gpu_kernels::Load(value) * (largest / gpu_kernels::kLargestF8));
    }
  }
  const std::vector<float> got = Run(c.invariant, p, 0, kRead);
  size_t wrong = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) ? !std::isnan(got[i]) : got[i] != want[i]) ++wrong;
  }
  c.report.Expect(wrong == 0, c.op,
                  std::to_string(wrong) + " values of " + std::to_string(rows) + " x " +
                      std::to_string(cols) + " from dtype " + std::to_string(dtype));
}

}  // namespace ashlar::gpu_test
