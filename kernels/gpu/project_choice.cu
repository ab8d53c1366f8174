#include <algorithm>

#include "number.h"
#include "project_call.h"

namespace ashlar::gpu_kernels {
namespace {

// Tokens whose products the device's own kernel carries out, since it is the fastest there. Large
// weights, but not those of a vocabulary, are its own from one token on.
struct FusedTokens {
  int64_t fewest, most;
};
constexpr FusedTokens kFused16{5, 32}, kFused8{1, 64};
constexpr int64_t kLargeWeight = 64 << 20, kVocabularyWeight = 512 << 20;  // bytes

// Whether all gates are in one part and row i of the ups is as far from its begin as row i of them.
bool HasHalves(const ashlar_weight& weight) {
  return weight.parts.size() == 1 ||
         (weight.parts.size() == 2 && weight.parts[0].rows == weight.parts[1].rows);
}

// Whether a kernel takes all parts of a weight.
template <class Takes>
bool TakesParts(const ProjectCall& c, Takes takes) {
  FusedProductParams p = MakeFusedParams(c);
  for (const ashlar_weight::Part& part : c.weight.parts) {
    p.rows = static_cast<int>(c.a.gated != 0 ? c.weight.rows / 2 : part.rows);
    if (!takes(p)) return false;
  }
  return true;
}

// Whether some part is multiplied with x in another form than it comes in.
bool Converts(const ProjectCall& c, bool norm_apart) {
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
int64_t MostFusedBytes(const ProjectCall& c) {
  if (c.device->fused == nullptr || c.device->invariant) return 0;
  constexpr int64_t kMost = std::max(kFused16.most, kFused8.most);
  return 2 * RoundUp(kMost * c.weight.pitch * 2);
}

}  // namespace

ashlar_dtype CommonType(const ashlar_weight& weight) {
  const ashlar_dtype first = weight.parts[0].dtype;
  for (const ashlar_weight::Part& part : weight.parts) {
    if (part.dtype != first) return ASHLAR_F32;
  }
  return first;
}

FusedProductParams MakeFusedParams(const ProjectCall& c) {
  FusedProductParams p{};
  p.type = c.type;
  p.pitch = c.weight.pitch;
  p.cols = static_cast<int>(c.x.shape[1]);
  p.x = c.x.data;
  p.x_row_bytes = c.x.stride[0];
  p.x_scales = c.x_scales;
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

// Chooses the kernels: the norm is inside of the skinny one when that reads x as it is.
void ChooseKernels(ProjectCall& c) {
  if (c.device->invariant || c.type == ASHLAR_F32) return;
  if (c.a.gated != 0 && !HasHalves(c.weight)) return;
  const FusedProducts* own = c.device->fused.get();
  const FusedTokens& of = c.type == ASHLAR_F8_E4M3 ? kFused8 : kFused16;
  const int64_t tokens = c.x.shape[0];
  const int64_t bytes = c.weight.rows * c.weight.pitch * ElementBytes(c.type);
  const bool large = kLargeWeight <= bytes && bytes < kVocabularyWeight;
  c.fused = own != nullptr && (large || of.fewest <= tokens) && tokens <= of.most &&
            TakesParts(c, [&](const FusedProductParams& p) { return own->Takes(p); });
  if (c.fused) return;
  if (c.x.shape[0] > kMostSkinnyTokens) return;
  const bool inside = c.a.norm.data != nullptr && XType(c.type) == ASHLAR_BF16 &&
                      IsPlain(c.x, ASHLAR_BF16) && IsAligned(c.a.norm.data);
  for (const bool norm_inside : {inside, false}) {
    c.norm_inside = norm_inside;
    c.skinny =
        TakesParts(c, [&](const FusedProductParams& p) { return FitsSkinny(c.device->facts, p); });
    if (c.skinny) return;
  }
}

bool TakeScratch(ProjectCall& c) {
  const int64_t tokens = c.x.shape[0], padded = tokens * c.weight.pitch;
  const int64_t normed_bytes = c.norm_apart ? RoundUp(padded * ElementBytes(NormedType(c))) : 0;
  const int64_t room_bytes = Converts(c, c.norm_apart) ? RoundUp(padded * 2) : 0;
  const bool wide = c.a.gated != 0 && !c.skinny && !c.fused;
  const int64_t wide_bytes = wide ? tokens * c.weight.rows * ElementBytes(c.a.out.dtype) : 0;
  if (wide && FitInOut(c.a.out, normed_bytes + room_bytes)) {
    // Gates and ups are there before the answer is written, and nothing reads x any more.
    c.normed = c.a.out.data;
    c.room = static_cast<char*>(c.normed) + normed_bytes;
    c.wide = c.device->Scratch(std::max(wide_bytes, MostFusedBytes(c)));
    return c.wide != nullptr;
  }
  const int64_t bytes = std::max(normed_bytes + room_bytes + wide_bytes, MostFusedBytes(c));
  if (bytes == 0) return true;
  auto* scratch = static_cast<char*>(c.device->Scratch(bytes));
  if (scratch == nullptr) return false;
  c.normed = scratch;
  c.room = scratch + normed_bytes;
  c.wide = scratch + normed_bytes + room_bytes;
  return true;
}

}  // namespace ashlar::gpu_kernels
