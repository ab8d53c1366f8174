// The ops that work by rows.
#include "gpu/stored.h"

namespace ashlar::gpu_test {
namespace {

constexpr float kPoison = NAN;

std::vector<float> Poisoned(int64_t count) {
  return std::vector<float>(static_cast<size_t>(count), kPoison);
}

// `share` of each value; `least` for those that the type holds less exactly.
std::vector<double> Relative(const std::vector<float>& want, double share, double least = 1e-30) {
  std::vector<double> tolerance;
  for (float value : want) tolerance.push_back(share * std::fabs(double{value}) + least);
  return tolerance;
}

// The reference computes in float32 alone.
ashlar_dtype On(const Side& side, ashlar_dtype dtype) {
  return side.is_reference() ? ASHLAR_F32 : dtype;
}

std::string Extents(int64_t rows, int64_t cols) {
  return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

}  // namespace

void EmbedCase(const Context& c) {
  const int64_t rows = c.random.Int(3, 60), cols = 32 * c.random.Int(1, 9), n = c.random.Int(1, 12);
  const std::vector<float> values = c.random.Normals(rows * cols);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(c.random.Int(0, rows - 1)));
  const auto run = [&](const Side& side) {
    ashlar_weight_desc desc{};
    desc.parts = 1, desc.dtype[0] = ASHLAR_F32, desc.rows[0] = rows, desc.cols = cols;
    desc.gathered = 1;
    const void* source = values.data();
    ashlar_weight* weight = nullptr;
    side.Must(side.table().weight_create(side.device(), &desc, &source, &weight));
    const Array<int32_t> id(side, ids);
    const Array<float> out(side, Poisoned(n * cols));
    side.Must(side.table().embed(side.device(), side.stream(),
                                 Dense(out.data(), ASHLAR_F32, {n, cols}), weight, id.data(),
                                 1.5f));
    const std::vector<float> got = out.Read();
    side.table().weight_destroy(side.device(), weight);
    return got;
  };
  const std::vector<float> want = run(c.reference);
  c.report.Compare(c.op, Extents(n, cols), run(c.plugin), want, Relative(want, 1e-6));
}

void GatherCase(const Context& c) {
  const int64_t m = c.random.Int(1, 20), n = c.random.Int(1, 30), cols = c.random.Int(1, 600);
  const ashlar_dtype dtype = PickFloat(c.random);
  const std::vector<float> x = Rounded(dtype, c.random.Normals(m * cols));
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < n; ++i) rows.push_back(static_cast<int32_t>(c.random.Int(0, m - 1)));
  const auto run = [&](const Side& side) {
    const ashlar_dtype as = On(side, dtype);
    const Stored in(side, as, x), out(side, as, Poisoned(n * cols));
    const Array<int32_t> index(side, rows, false);
    side.Must(side.table().gather(side.device(), side.stream(), Dense(out.data(), as, {n, cols}),
                                  Dense(in.data(), as, {m, cols}), index.data()));
    return out.Read();
  };
  const std::vector<float> want = run(c.reference);
  c.report.Compare(c.op, Extents(n, cols), run(c.plugin), want, Relative(want, 0));
}

// All terms of the mean are positive: float32 sums keep their relative error small.
void NormCase(const Context& c) {
  const int64_t n = c.random.Int(1, 12);
  const int64_t cols = c.random.Chance(0.4) ? 8 * c.random.Int(1, 1000) : c.random.Int(1, 3000);
  const ashlar_dtype dtype = PickFloat(c.random);
  const double deviation = c.random.Pick<double>({dtype == ASHLAR_F16 ? 1e-1 : 1e-3, 1, 100});
  const std::vector<float> x = Rounded(dtype, c.random.Normals(n * cols, deviation));
  const std::vector<float> weight = c.random.Normals(cols);
  const auto run = [&](const Side& side) {
    const ashlar_dtype as = On(side, dtype);
    const Stored in(side, as, x), out(side, as, Poisoned(n * cols));
    const Array<float> w(side, weight, false);
    const auto matrix = [&](const Stored& a) { return Dense(a.data(), as, {n, cols}); };
    side.Must(side.table().rms_norm(side.device(), side.stream(), matrix(out), matrix(in),
                                    Dense(w.data(), ASHLAR_F32, {cols}), 1e-5f));
    return out.Read();
  };
  const std::vector<float> want = run(c.reference);
  const double step = dtype == ASHLAR_F32 ? 0 : RoundingStep(dtype);
  c.report.Compare(c.op, Extents(n, cols), run(c.plugin), want, Relative(want, 1e-5 + step, 1e-7));
}

void ActivationCase(const Context& c) {
  // As many as several rows a thread are chosen for, on the host executor and on a large device.
  const bool many = c.random.Chance(0.3);
  const int64_t n = many ? c.random.Int(128, 150) * (c.large ? 8 : 1) : c.random.Int(1, 20);
  const int64_t width = many ? 8 * c.random.Int(260, 300) : c.random.Int(1, 700);
  const ashlar_dtype dtype = PickFloat(c.random);
  const std::vector<float> x = Rounded(dtype, c.random.Normals(n * 2 * width, 3));
  const auto activation = c.random.Chance(0.5) ? ASHLAR_SILU : ASHLAR_GELU_TANH;
  const auto run = [&](const Side& side) {
    const ashlar_dtype as = On(side, dtype);
    const Stored in(side, as, x), out(side, as, Poisoned(n * width));
    side.Must(side.table().gated_activation(side.device(), side.stream(),
                                            Dense(out.data(), as, {n, width}),
                                            Dense(in.data(), as, {n, 2 * width}), activation));
    return out.Read();
  };
  const std::vector<float> want = run(c.reference);
  // 1 + tanh of a large negative value cancels: absolute errors of float32 there.
  const double step = dtype == ASHLAR_F32 ? 0 : RoundingStep(dtype);
  const double least = dtype == ASHLAR_F16 ? 1e-7 : 1e-30;
  std::vector<double> tolerance;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t col = 0; col < width; ++col) {
      const double gate = x[static_cast<size_t>(i * 2 * width + col)];
      const double up = x[static_cast<size_t>(i * 2 * width + width + col)];
      tolerance.push_back((4e-6 + step) * std::fabs(gate * up) + least);
    }
  }
  c.report.Compare(c.op, Extents(n, width), run(c.plugin), want, tolerance);
}

void AddCase(const Context& c) {
  const int64_t n = c.random.Int(1, 20), cols = c.random.Int(1, 700);
  const ashlar_dtype dtype = PickFloat(c.random);
  const std::vector<float> a = Rounded(dtype, c.random.Normals(n * cols));
  const std::vector<float> b = Rounded(dtype, c.random.Normals(n * cols));
  const auto run = [&](const Side& side) {
    const ashlar_dtype as = On(side, dtype);
    const Stored sum(side, as, a), x(side, as, b);
    side.Must(side.table().add(side.device(), side.stream(), Dense(sum.data(), as, {n, cols}),
                               Dense(x.data(), as, {n, cols})));
    return sum.Read();
  };
  const std::vector<float> want = run(c.reference);
  c.report.Compare(c.op, Extents(n, cols), run(c.plugin), want,
                   Relative(want, dtype == ASHLAR_F32 ? 0 : RoundingStep(dtype), 1e-7));
}

void CopyBlocksCase(const Context& c) {
  const int64_t blocks = 2 * c.random.Int(2, 10);
  const int64_t bytes = c.random.Chance(0.5) ? 16 * c.random.Int(1, 40) : c.random.Int(1, 300);
  std::vector<uint8_t> want;
  for (int64_t i = 0; i < blocks * bytes; ++i) want.push_back(static_cast<uint8_t>(i * 7 + 1));
  const Array<uint8_t> arena(c.plugin, want);
  std::vector<int64_t> pairs;
  for (int64_t i = 0; i < blocks / 2; ++i) {  // from even blocks to odd ones
    const int64_t from = 2 * i * bytes, to = (2 * i + 1) * bytes;
    pairs.insert(pairs.end(), {from, to});
    std::copy(want.begin() + from, want.begin() + from + bytes, want.begin() + to);
  }
  const Array<int64_t> offsets(c.plugin, pairs);
  c.plugin.Must(c.plugin.table().copy_blocks(c.plugin.device(), c.plugin.stream(), arena.data(),
                                             offsets.data(), static_cast<int32_t>(blocks / 2),
                                             bytes));
  c.report.Expect(arena.Read() == want, c.op, std::to_string(bytes) + " bytes");
}

}  // namespace ashlar::gpu_test
