// Products with what stands around them. Up to some number of tokens one kernel does all of it, the
// device's own or the portable one; beyond, and where neither fits, the parts run one after
// another.
#include "common/shapes.h"
#include "op_checks.h"
#include "ops.h"
#include "product.h"
#include "project_call.h"

namespace ashlar::gpu_kernels {
namespace {

ashlar_tensor Matrix(void* data, ashlar_dtype dtype, int64_t rows, int64_t cols, int64_t pitch) {
  ashlar_tensor t{};
  t.data = data;
  t.dtype = dtype;
  t.rank = 2;
  t.shape[0] = rows, t.shape[1] = cols;
  t.stride[0] = pitch * ElementBytes(dtype), t.stride[1] = ElementBytes(dtype);
  return t;
}

MatmulParams ProductParams(const ashlar_tensor& x, const ashlar_weight& weight) {
  MatmulParams p{};
  p.pitch = weight.pitch;
  p.x = x.data;
  p.x_dtype = x.dtype;
  p.x_row_bytes = x.stride[0];
  p.tokens = static_cast<int>(x.shape[0]);
  p.cols = static_cast<int>(weight.cols);
  p.x_aligned = HasEights(x);
  return p;
}

int Norm(ProjectCall& c) {
  c.x = Matrix(c.normed, NormedType(c), c.x.shape[0], c.weight.cols, c.weight.pitch);
  c.norm_apart = false;
  return RmsNorm(c.device, c.stream, c.x, c.a.x, c.a.norm, c.a.eps);
}

// Column `first` of a matrix of the args, or NULL where there is none.
char* Column(const ashlar_tensor& t, int64_t first) {
  return t.data == nullptr ? nullptr : static_cast<char*>(t.data) + first * ElementBytes(t.dtype);
}

// Brings x, normed unless the kernel does that, to the type that is multiplied.
int Prepare(ProjectCall& c) {
  const gpu::Stream stream = StreamOf(c.device, c.stream);
  const int64_t pitch = c.weight.pitch;
  if (c.fused && c.type == ASHLAR_F8_E4M3) {
    const MatmulParams p = ProductParams(c.x, c.weight);
    const XNorm norm{static_cast<const float*>(c.a.norm.data), c.a.eps};
    c.x_scales = F8Scales(p, c.room);
    c.x = Matrix(c.room, c.type, c.x.shape[0], pitch, pitch);
    return Checked(LaunchQuantize(c.device->facts.wave, stream, p, norm, c.room), "project");
  }
  if (c.norm_apart && Norm(c) != ASHLAR_OK) return ASHLAR_FAILED;
  const ashlar_dtype type = XType(c.type);
  if (IsPlain(c.x, type)) return ASHLAR_OK;
  const MatmulParams p = ProductParams(c.x, c.weight);
  c.x = Matrix(c.room, type, c.x.shape[0], pitch, pitch);
  return Checked(LaunchConvert(stream, p, type, c.room), "project");
}

// By one kernel a part, or one for gates and ups.
int RunWhole(ProjectCall& c) {
  if (Prepare(c) != ASHLAR_OK) return ASHLAR_FAILED;
  FusedProductParams p = MakeFusedParams(c);
  const auto launch = [&] {
    const gpu::Stream stream = StreamOf(c.device, c.stream);
    return Checked(
        c.fused ? c.device->fused->Launch(stream, p) : LaunchSkinny(c.device->facts, stream, p),
        "project");
  };
  const std::vector<ashlar_weight::Part>& parts = c.weight.parts;
  if (c.a.gated != 0) {
    p.rows = static_cast<int>(c.weight.rows / 2);
    p.weight[0] = parts[0].data;
    p.weight[1] = parts.size() == 2 ? parts[1].data
                                    : static_cast<const char*>(parts[0].data) +
                                          p.rows * p.pitch * ElementBytes(c.type);
    p.scales[0] = parts[0].scales;
    p.scales[1] = parts.size() == 2            ? parts[1].scales
                  : parts[0].scales == nullptr ? nullptr
                                               : parts[0].scales + p.rows;
    p.out = c.a.out.data;
    return launch();
  }
  for (const ashlar_weight::Part& part : parts) {
    p.rows = static_cast<int>(part.rows);
    p.weight[0] = part.data;
    p.scales[0] = part.scales;
    p.bias = reinterpret_cast<const float*>(Column(c.a.bias, part.first_row));
    p.residual = Column(c.a.residual, part.first_row);
    p.out = Column(c.a.out, part.first_row);
    if (launch() != ASHLAR_OK) return ASHLAR_FAILED;
  }
  return ASHLAR_OK;
}

int RunParts(ProjectCall& c) {
  ashlar_tensor out = c.a.out;
  if (c.a.gated != 0) {
    out = Matrix(c.wide, out.dtype, out.shape[0], c.weight.rows, c.weight.rows);
  }
  const auto params = [&](const ashlar_weight::Part& part) {
    MatmulParams p = ProductParams(c.x, c.weight);
    p.weight = part.data;
    p.scales = part.scales;
    p.rows = static_cast<int>(part.rows);
    p.out = Column(out, part.first_row);
    p.out_dtype = out.dtype;
    p.out_row_bytes = out.stride[0];
    p.bias = reinterpret_cast<const float*>(Column(c.a.bias, part.first_row));
    p.residual = Column(c.a.residual, part.first_row);
    p.residual_row_bytes = c.a.residual.stride[0];
    return p;
  };
  const gpu::Stream stream = StreamOf(c.device, c.stream);
  const XNorm norm{static_cast<const float*>(c.a.norm.data), c.a.eps};
  for (const ashlar_weight::Part& part : c.weight.parts) {
    const bool float8 = part.dtype == ASHLAR_F8_E4M3;
    if (c.norm_apart && float8 && LaunchNormedF8(c.device, stream, params(part), norm, c.room)) {
      continue;
    }
    if (c.norm_apart && Norm(c) != ASHLAR_OK) return ASHLAR_FAILED;
    if (LaunchProduct(c.device, stream, params(part), part.dtype, c.room) != ASHLAR_OK) {
      return ASHLAR_FAILED;
    }
  }
  if (c.a.gated == 0) return ASHLAR_OK;
  return GatedActivation(c.device, c.stream, c.a.out, out, c.a.activation);
}

}  // namespace

std::string CheckProject(const ashlar_projection& a) {
  const int64_t rows = a.weight->rows;
  std::string problem = CheckMatrix("project x", a.x, -1, a.weight->cols, kFloats);
  if (problem.empty() && a.gated != 0 && rows % 2 != 0) problem = "project: gates without ups";
  if (problem.empty()) {
    problem =
        CheckMatrix("project out", a.out, a.x.shape[0], a.gated != 0 ? rows / 2 : rows, kFloats);
  }
  if (problem.empty() && a.bias.data != nullptr)
    problem = CheckVector("project bias", a.bias, rows);
  if (problem.empty() && a.norm.data != nullptr) {
    problem = CheckVector("project norm", a.norm, a.weight->cols);
  }
  if (problem.empty() && a.residual.data != nullptr) {
    problem = CheckMatrix("project residual", a.residual, a.x.shape[0], rows, kFloats);
    if (problem.empty() && a.residual.dtype != a.out.dtype) problem = "project residual: dtype";
  }
  if (problem.empty() && a.gated != 0) {
    if (a.bias.data != nullptr || a.residual.data != nullptr) {
      problem = "project: gated with a bias or a residual";
    } else if (a.activation != ASHLAR_SILU && a.activation != ASHLAR_GELU_TANH) {
      problem = "project: unknown activation";
    }
  }
  return problem;
}

int Project(ashlar_device* device, ashlar_stream* stream, const ashlar_projection* args) {
  const std::string problem = CheckProject(*args);
  if (!problem.empty()) return Failed(problem);
  if (args->x.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "project") != ASHLAR_OK) return ASHLAR_FAILED;
  const ashlar_weight& weight = *args->weight;
  ProjectCall c{device, stream, *args, weight, CommonType(weight), args->x};
  ChooseKernels(c);
  c.norm_apart = args->norm.data != nullptr && !c.norm_inside;
  if (!TakeScratch(c)) return Failed("project: out of memory");
  return c.skinny || c.fused ? RunWhole(c) : RunParts(c);
}

int Matmul(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
           const ashlar_weight* weight, ashlar_tensor bias) {
  ashlar_projection args{};
  args.out = out;
  args.x = x;
  args.weight = weight;
  args.bias = bias;
  return Project(device, stream, &args);
}

}  // namespace ashlar::gpu_kernels
