// Products with what stands around them. Up to some number of tokens one kernel does all of it, the
// device's own or the portable one; beyond, and where neither fits, the parts run one after
// another.
#include <algorithm>

#include "device.h"
#include "ops.h"
#include "product.h"
#include "shapes.h"
#include "skinny_product.h"
#include "weight.h"

namespace ashlar::gpu_kernels {
namespace {

// Tokens whose products the device's own kernel carries out where it is the fastest, and how many
// of them it norms and brings to float8 itself.
struct FusedTokens {
  int64_t fewest, most, raw;
};
constexpr FusedTokens kFused16{5, 32, 0}, kFused8{1, 32, 0};

std::string CheckArgs(const ashlar_projection& a) {
  const int64_t rows = a.weight->rows;
  std::string problem = CheckMatrix("project x", a.x, -1, a.weight->cols);
  if (problem.empty() && a.gated != 0 && rows % 2 != 0) problem = "project: gates without ups";
  if (problem.empty()) {
    problem = CheckMatrix("project out", a.out, a.x.shape[0], a.gated != 0 ? rows / 2 : rows);
  }
  if (problem.empty() && a.bias.data != nullptr)
    problem = CheckVector("project bias", a.bias, rows);
  if (problem.empty() && a.norm.data != nullptr) {
    problem = CheckVector("project norm", a.norm, a.weight->cols);
  }
  if (problem.empty() && a.residual.data != nullptr) {
    problem = CheckMatrix("project residual", a.residual, a.x.shape[0], rows);
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

bool IsAligned(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

// The type of every part when they share one, else float32, which every kernel but the skinny one
// takes.
ashlar_dtype CommonType(const ashlar_weight& weight) {
  const ashlar_dtype first = weight.parts[0].dtype;
  for (const ashlar_weight::Part& part : weight.parts) {
    if (part.dtype != first) return ASHLAR_F32;
  }
  return first;
}

// Whether all gates are in one part and row i of the ups is as far from its begin as row i of them.
bool HasHalves(const ashlar_weight& weight) {
  return weight.parts.size() == 1 ||
         (weight.parts.size() == 2 && weight.parts[0].rows == weight.parts[1].rows);
}

// The type of x that own kernels multiply such a weight with.
ashlar_dtype XType(ashlar_dtype weight) { return weight == ASHLAR_F8_E4M3 ? ASHLAR_BF16 : weight; }

bool IsPlain(const ashlar_tensor& x, ashlar_dtype type) { return x.dtype == type && HasEights(x); }

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

// One call on its way: what was decided before anything is launched, then x as it changes.
struct Call {
  ashlar_device* device;
  ashlar_stream* stream;
  const ashlar_projection& a;
  const ashlar_weight& weight;
  ashlar_dtype type;                // CommonType
  ashlar_tensor x;                  // what is multiplied
  const float* x_scales = nullptr;  // of float8 x
  void* normed = nullptr;           // for x after a norm that is a kernel of its own
  void* room = nullptr;             // for x as `type`, padded
  void* wide = nullptr;             // for gates and ups
  void* parts = nullptr;            // for the device's own kernel
  bool fused = false;               // by the device's own kernel
  bool raw = false;                 // which takes x as it comes
  bool skinny = false, norm_inside = false;
  bool norm_apart = false;  // still to be done, ahead of the product
};

// The type of x after a norm that is a kernel of its own.
ashlar_dtype NormedType(const Call& c) {
  return c.type == ASHLAR_F32 ? c.a.x.dtype : XType(c.type);
}

int Norm(Call& c) {
  c.x = Matrix(c.normed, NormedType(c), c.x.shape[0], c.weight.cols, c.weight.pitch);
  c.norm_apart = false;
  return RmsNorm(c.device, c.stream, c.x, c.a.x, c.a.norm, c.a.eps);
}

SkinnyParams MakeSkinny(const Call& c) {
  SkinnyParams p{};
  p.type = c.type;
  p.pitch = c.weight.pitch;
  p.cols = static_cast<int>(c.x.shape[1]);
  p.x = c.x.data;
  p.x_dtype = c.raw ? c.x.dtype : c.type;
  p.x_row_bytes = c.x.stride[0];
  p.x_scales = c.x_scales;
  p.parts = static_cast<float*>(c.parts);
  p.tokens = static_cast<int>(c.x.shape[0]);
  p.norm = c.norm_inside ? static_cast<const float*>(c.a.norm.data) : nullptr;
  p.eps = c.a.eps;
  p.out_dtype = c.a.out.dtype;
  p.out_row_bytes = c.a.out.stride[0];
  p.residual_row_bytes = c.a.residual.stride[0];
  p.gated = c.a.gated;
  p.activation = c.a.activation;
  return p;
}

// Column `first` of a matrix of the args, or NULL where there is none.
char* Column(const ashlar_tensor& t, int64_t first) {
  return t.data == nullptr ? nullptr : static_cast<char*>(t.data) + first * ElementBytes(t.dtype);
}

// Brings x, normed unless the kernel does that, to the type that is multiplied.
int Prepare(Call& c) {
  if (c.raw) return ASHLAR_OK;
  const gpu::Stream stream = StreamOf(c.stream);
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
int RunWhole(Call& c) {
  if (Prepare(c) != ASHLAR_OK) return ASHLAR_FAILED;
  SkinnyParams p = MakeSkinny(c);
  const auto launch = [&] {
    const gpu::Stream stream = StreamOf(c.stream);
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
    p.scales[1] = parts.size() == 2 ? parts[1].scales : parts[0].scales + p.rows;
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

int RunParts(Call& c) {
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
  const gpu::Stream stream = StreamOf(c.stream);
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

// Whether a kernel takes all parts of a weight.
template <class Takes>
bool TakesParts(const Call& c, Takes takes) {
  SkinnyParams p = MakeSkinny(c);
  for (const ashlar_weight::Part& part : c.weight.parts) {
    p.rows = static_cast<int>(c.a.gated != 0 ? c.weight.rows / 2 : part.rows);
    if (!takes(p)) return false;
  }
  return true;
}

// Chooses the kernels: the norm is inside of the skinny one when that reads x as it is.
void Choose(Call& c) {
  if (c.device->invariant || c.type == ASHLAR_F32) return;
  if (c.a.gated != 0 && !HasHalves(c.weight)) return;
  const FusedProducts* own = c.device->fused.get();
  const FusedTokens& fused = c.type == ASHLAR_F8_E4M3 ? kFused8 : kFused16;
  const int64_t tokens = c.x.shape[0];
  const bool differs = c.a.norm.data != nullptr || c.a.x.dtype != c.type;
  const bool raw = differs && tokens <= fused.raw && HasEights(c.a.x) && IsAligned(c.a.norm.data);
  for (const bool as_it_is : {raw, false}) {
    c.raw = as_it_is;
    c.norm_inside = c.raw && c.a.norm.data != nullptr;
    c.fused = own != nullptr && fused.fewest <= tokens && tokens <= fused.most &&
              TakesParts(c, [&](const SkinnyParams& p) { return own->Takes(p); });
    if (c.fused) return;
  }
  if (c.x.shape[0] > kMostSkinnyTokens) return;
  const bool inside = c.a.norm.data != nullptr && XType(c.type) == ASHLAR_BF16 &&
                      IsPlain(c.x, ASHLAR_BF16) && IsAligned(c.a.norm.data);
  for (const bool norm_inside : {inside, false}) {
    c.norm_inside = norm_inside;
    c.skinny = TakesParts(c, [&](const SkinnyParams& p) { return FitsSkinny(c.device->facts, p); });
    if (c.skinny) return;
  }
}

// Whether some part is multiplied with x in another form than it comes in.
bool Converts(const Call& c, bool norm_apart) {
  const ashlar_dtype dtype = norm_apart ? NormedType(c) : c.a.x.dtype;
  const bool padded = c.weight.cols == c.weight.pitch && (norm_apart || HasEights(c.a.x));
  for (const ashlar_weight::Part& part : c.weight.parts) {
    if (part.dtype != ASHLAR_F32 && !(padded && part.dtype == dtype)) return true;
  }
  return false;
}

// Whether `bytes` fit where the answer will be.
bool FitInOut(const ashlar_tensor& out, int64_t bytes) {
  const int64_t row_bytes = out.shape[1] * ElementBytes(out.dtype);
  return out.stride[0] == row_bytes && IsAligned(out.data) && bytes <= out.shape[0] * row_bytes;
}

int64_t RoundUp(int64_t bytes) { return (bytes + 255) / 256 * 256; }

// What the device's own kernel needs at most, whatever the tokens of this call: the largest step
// makes the scratch of all, and graphs keep its address.
int64_t MostFusedBytes(const Call& c) {
  if (c.device->fused == nullptr || c.device->invariant) return 0;
  constexpr int64_t kMost = std::max(kFused16.most, kFused8.most);
  return 2 * RoundUp(kMost * c.weight.pitch * 2) + c.device->fused->PartsBytes(kMost);
}

// Sizes what the kernels pass to each other, and takes it from the device's scratch.
bool TakeScratch(Call& c) {
  const int64_t tokens = c.x.shape[0], padded = tokens * c.weight.pitch;
  const int64_t normed_bytes = c.norm_apart ? RoundUp(padded * ElementBytes(NormedType(c))) : 0;
  const int64_t room_bytes = !c.raw && Converts(c, c.norm_apart) ? RoundUp(padded * 2) : 0;
  const bool wide = c.a.gated != 0 && !c.skinny && !c.fused;
  const int64_t wide_bytes = wide ? tokens * c.weight.rows * ElementBytes(c.a.out.dtype) : 0;
  if (wide && FitInOut(c.a.out, normed_bytes + room_bytes)) {
    // Gates and ups are there before the answer is written, and nothing reads x any more.
    c.normed = c.a.out.data;
    c.room = static_cast<char*>(c.normed) + normed_bytes;
    c.wide = c.device->Scratch(std::max(wide_bytes, MostFusedBytes(c)));
    return c.wide != nullptr;
  }
  const int64_t parts_bytes = c.fused ? c.device->fused->PartsBytes(static_cast<int>(tokens)) : 0;
  const int64_t bytes =
      std::max(normed_bytes + room_bytes + std::max(wide_bytes, parts_bytes), MostFusedBytes(c));
  if (bytes == 0) return true;
  auto* scratch = static_cast<char*>(c.device->Scratch(bytes));
  if (scratch == nullptr) return false;
  c.normed = scratch;
  c.room = scratch + normed_bytes;
  c.wide = scratch + normed_bytes + room_bytes;  // no product needs both
  c.parts = c.wide;
  return true;
}

}  // namespace

int Project(ashlar_device* device, ashlar_stream* stream, const ashlar_projection* args) {
  const std::string problem = CheckArgs(*args);
  if (!problem.empty()) return Failed(problem);
  if (args->x.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "project") != ASHLAR_OK) return ASHLAR_FAILED;
  const ashlar_weight& weight = *args->weight;
  Call c{device, stream, *args, weight, CommonType(weight), args->x};
  Choose(c);
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
