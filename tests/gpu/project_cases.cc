#include "gpu/cases.h"
#include "gpu/matmul_cases.h"
#include "gpu/stored.h"

namespace ashlar::gpu_test {
namespace {

// A projection with random shapes, its values rounded to the types that they are stored in.
struct Problem {
  RandomWeight weight;
  ashlar_dtype dtype = ASHLAR_F32;  // of x, residual and out
  int64_t m = 0;
  bool gated = false;
  ashlar_activation activation = ASHLAR_SILU;
  std::vector<float> x, norm, bias, residual;

  int64_t out_cols() const { return gated ? weight.rows / 2 : weight.rows; }
};

std::vector<float> Run(const Side& side, const Problem& p) {
  ashlar_weight* weight = p.weight.Create(side);
  const Stored x(side, p.dtype, p.x);
  const Array<float> norm(side, p.norm, false), bias(side, p.bias, false);
  // In place where there is a residual, as the runtime does.
  const std::vector<float> poison(static_cast<size_t>(p.m * p.out_cols()), NAN);
  const Stored out(side, p.dtype, p.residual.empty() ? poison : p.residual);
  ashlar_projection a{};
  a.out = Dense(out.data(), p.dtype, {p.m, p.out_cols()});
  a.x = Dense(x.data(), p.dtype, {p.m, p.weight.desc.cols});
  a.weight = weight;
  if (!p.bias.empty()) a.bias = Dense(bias.data(), ASHLAR_F32, {p.weight.rows});
  if (!p.norm.empty()) a.norm = Dense(norm.data(), ASHLAR_F32, {p.weight.desc.cols});
  a.eps = 1e-5f;
  if (!p.residual.empty()) a.residual = a.out;
  a.gated = p.gated ? 1 : 0;
  a.activation = p.activation;
  side.Must(side.table().project(side.device(), side.stream(), &a));
  std::vector<float> got = out.Read();
  side.table().weight_destroy(side.device(), weight);
  return got;
}

// The composition of the reference's parts over float32.
struct Wanted {
  std::vector<float> normed, product, out;
};
Wanted Compose(const Side& side, const Problem& p) {
  const ashlar_plugin& t = side.table();
  const int64_t cols = p.weight.desc.cols;
  Wanted want;
  want.normed = p.x;
  if (!p.norm.empty()) {
    const Array<float> x(side, p.x), norm(side, p.norm);
    const ashlar_tensor matrix = Dense(x.data(), ASHLAR_F32, {p.m, cols});
    side.Must(t.rms_norm(side.device(), side.stream(), matrix, matrix,
                         Dense(norm.data(), ASHLAR_F32, {cols}), 1e-5f));
    want.normed = x.Read();
  }
  ashlar_weight* weight = p.weight.Create(side);
  const Array<float> x(side, want.normed), bias(side, p.bias);
  const Array<float> product(side, std::vector<float>(static_cast<size_t>(p.m * p.weight.rows)));
  const ashlar_tensor wide = Dense(product.data(), ASHLAR_F32, {p.m, p.weight.rows});
  side.Must(
      t.matmul(side.device(), side.stream(), wide, Dense(x.data(), ASHLAR_F32, {p.m, cols}), weight,
               p.bias.empty() ? ashlar_tensor{} : Dense(bias.data(), ASHLAR_F32, {p.weight.rows})));
  side.table().weight_destroy(side.device(), weight);
  want.product = product.Read();
  want.out = want.product;
  if (p.gated) {
    const Array<float> out(side, std::vector<float>(static_cast<size_t>(p.m * p.out_cols())));
    side.Must(t.gated_activation(side.device(), side.stream(),
                                 Dense(out.data(), ASHLAR_F32, {p.m, p.out_cols()}), wide,
                                 p.activation));
    want.out = out.Read();
  }
  for (size_t i = 0; i < p.residual.size(); ++i) want.out[i] += p.residual[i];
  return want;
}

std::string Describe(const Problem& p) {
  const char* types[] = {"f32", "f16", "bf16"};
  return std::string(types[p.dtype]) + " m " + std::to_string(p.m) + " rows " +
         std::to_string(p.weight.rows) + " in " + std::to_string(p.weight.desc.parts) + " cols " +
         std::to_string(p.weight.desc.cols) + (p.norm.empty() ? "" : " norm") +
         (p.bias.empty() ? "" : " bias") + (p.residual.empty() ? "" : " residual") +
         (p.gated ? " gated" : "");
}

std::vector<float> Scaled(std::vector<float> values, double scale) {
  for (float& value : values) value = static_cast<float>(value * scale);
  return values;
}

Problem MakeProblem(Random& random, bool large) {
  Problem p;
  p.gated = random.Chance(0.35);
  p.weight = RandomWeight::Make(random, p.gated, large);
  p.dtype = random.Pick<ashlar_dtype>({ASHLAR_F32, ASHLAR_F16, ASHLAR_BF16, ASHLAR_BF16});
  p.m = p.weight.Tokens(random, large);
  if (random.Chance(0.5)) p.activation = ASHLAR_GELU_TANH;
  const bool norm = random.Chance(0.5);
  // Gates and ups come to about 8, as in a model: larger ones leave the bend of the activation and,
  // multiplied, the range of float16.
  const double scale = p.gated ? 8 / p.weight.RowNorm() : 1;
  p.x = Rounded(p.dtype, Scaled(random.Normals(p.m * p.weight.desc.cols), norm ? 1 : scale));
  if (norm) p.norm = Scaled(random.Normals(p.weight.desc.cols), scale);
  if (!p.gated && random.Chance(0.3)) p.bias = random.Normals(p.weight.rows);
  if (!p.gated && random.Chance(0.5)) {
    p.residual = Rounded(p.dtype, random.Normals(p.m * p.weight.rows));
  }
  return p;
}

// Beside what a product may err (matmul_cases.cc): the norm's result is rounded once more, to x's
// type, and out to its own. |act'| stays under 1.13, so an error e of gate and up moves out by at
// most 1.13 e |up| + e |act(gate)| + 1.13 e^2.
std::vector<double> Tolerance(const Problem& p, const Wanted& want, bool narrow_x) {
  const int64_t cols = p.weight.desc.cols, rows = p.weight.rows;
  const double type_step = std::max(2e-6, RoundingStep(p.dtype));
  std::vector<double> tolerance;
  for (int64_t i = 0; i < p.m; ++i) {
    const double x_norm = VectorNorm(want.normed, i * cols, cols);
    const double bound =
        (p.weight.Step(narrow_x) + (p.norm.empty() ? 0 : type_step)) * x_norm * p.weight.RowNorm() +
        1e-5;
    for (int64_t col = 0; col < p.out_cols(); ++col) {
      const double out = want.out[static_cast<size_t>(i * p.out_cols() + col)];
      double error = bound;
      if (p.gated) {
        const double gate = want.product[static_cast<size_t>(i * rows + col)];
        const double up = want.product[static_cast<size_t>(i * rows + rows / 2 + col)];
        const double each = bound + type_step * std::max(std::fabs(gate), std::fabs(up));
        error = 1.13 * each * (std::fabs(up) + each) + each * std::fabs(gate) +
                4e-6 * std::fabs(gate * up);
      } else if (!p.residual.empty()) {  // the product alone may be rounded before
        const double product = want.product[static_cast<size_t>(i * rows + col)];
        error += type_step * std::fabs(product);
      }
      tolerance.push_back(error + 2 * type_step * std::fabs(out) + 1e-7);
    }
  }
  return tolerance;
}

}  // namespace

void ProjectCase(const Context& c) {
  const Problem p = MakeProblem(c.random, c.large);
  const Wanted want = Compose(c.reference, p);
  const std::string op = std::string("project ") + p.weight.Name() + (p.gated ? " gated" : "");
  c.report.Compare(op, Describe(p), Run(c.plugin, p), want.out,
                   Tolerance(p, want, MayNarrowX(c.plugin)));
  c.report.Compare(op + " invariant", Describe(p), Run(c.invariant, p), want.out,
                   Tolerance(p, want, false));
}

}  // namespace ashlar::gpu_test
