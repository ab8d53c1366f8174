// Whole layers in one launch, where the device has a kernel for them and each is of the one form
// that it knows; any others are left to their ops.
#include "layers.h"

#include <algorithm>
#include <array>
#include <span>

#include "device.h"
#include "op_checks.h"
#include "ops.h"
#include "project_call.h"

namespace ashlar::gpu_kernels {
namespace {

// By LayerProduct.
constexpr std::array<ashlar_projection ashlar_layer::*, kLayerProducts> kProducts = {
    &ashlar_layer::qkv, &ashlar_layer::output, &ashlar_layer::gate_up, &ashlar_layer::down};

std::string CheckLayer(const ashlar_layer& l) {
  for (const auto product : kProducts) {
    if (std::string problem = CheckProject(l.*product); !problem.empty()) return problem;
  }
  std::string problem = CheckPrepare(l.prepare);
  return problem.empty() ? CheckAttention(l.row, l.attention) : problem;
}

bool IsForFewTokens(const ashlar_attention& a) {
  return a.sequences >= 1 && a.sequences <= kMostLayerTokens && a.max_query == 1 &&
         a.q.shape[0] == a.sequences;
}

// bfloat16 rows end to end, each of whole 16 bytes.
bool IsDense(const ashlar_tensor& t) {
  int64_t bytes = 2;
  for (int32_t i = 1; i < t.rank; ++i) bytes *= t.shape[i];
  return t.dtype == ASHLAR_BF16 && t.stride[0] == bytes && bytes % 16 == 0 && IsAligned(t.data);
}
// Whether two such tensors, as rows, are one.
bool IsOne(const ashlar_tensor& a, const ashlar_tensor& b) {
  return IsDense(a) && IsDense(b) && a.data == b.data && a.shape[0] == b.shape[0] &&
         a.stride[0] == b.stride[0];
}

// What an op leaves stands where the next one reads it, and what is added to is `hidden`.
bool IsChain(const ashlar_layer& l) {
  const ashlar_tensor& hidden = l.qkv.x;
  const auto norms = [&](const ashlar_projection& p) {
    return IsOne(p.x, hidden) && p.norm.data != nullptr && p.residual.data == nullptr;
  };
  const auto adds = [&](const ashlar_projection& p) {
    return IsOne(p.out, hidden) && IsOne(p.residual, hidden) && p.norm.data == nullptr;
  };
  return norms(l.qkv) && l.qkv.gated == 0 && IsOne(l.prepare.qkv, l.qkv.out) &&
         IsOne(l.attention.q, l.prepare.q_out) && IsSame(l.attention.kv, l.prepare.kv) &&
         IsOne(l.output.x, l.attention.out) && adds(l.output) && norms(l.gate_up) &&
         l.gate_up.gated != 0 && IsOne(l.down.x, l.gate_up.out) && adds(l.down) &&
         l.down.bias.data == nullptr;
}

// What is not a tensor of the chain, where vectors are read.
bool AreAligned(const ashlar_layer& l) {
  const ashlar_kv_view& kv = l.prepare.kv;
  const auto place = [](const void* data) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data));
  };
  const int64_t all = place(l.qkv.norm.data) | place(l.qkv.bias.data) | place(l.output.bias.data) |
                      place(l.gate_up.norm.data) | place(l.prepare.q_norm.data) |
                      place(l.prepare.k_norm.data) | place(kv.base) | kv.block_stride |
                      kv.head_stride | kv.token_stride;
  return all % 16 == 0;
}

ashlar_dtype WeightType(const ashlar_layer& l) { return l.qkv.weight->parts[0].dtype; }
bool HasWeight(const ashlar_projection& p, ashlar_dtype dtype) {
  const ashlar_weight& weight = *p.weight;
  return weight.parts.size() == 1 && weight.parts[0].dtype == dtype && weight.cols % 64 == 0;
}

// Whether all but the places of LayerPlaces is as in the first layer.
bool IsLike(const ashlar_layer& first, const ashlar_layer& l) {
  for (const auto product : kProducts) {
    const ashlar_projection &a = first.*product, &b = l.*product;
    if (!IsOne(a.x, b.x) || !IsOne(a.out, b.out) || a.weight->rows != b.weight->rows ||
        a.weight->pitch != b.weight->pitch)
      return false;
  }
  const ashlar_qkv_prepare &a = first.prepare, &b = l.prepare;
  ashlar_kv_view kv = b.kv;
  kv.base = a.kv.base;
  return IsSame(a.kv, kv) && IsOne(a.q_out, b.q_out) && a.eps == b.eps &&
         a.positions == b.positions && a.rotary_dim == b.rotary_dim &&
         a.rope_scale == b.rope_scale && a.rope_style == b.rope_style &&
         first.attention.context == l.attention.context &&
         first.attention.sequences == l.attention.sequences &&
         first.attention.max_query == l.attention.max_query &&
         first.attention.query_start == l.attention.query_start &&
         first.attention.scale == l.attention.scale && l.qkv.eps == first.qkv.eps &&
         l.gate_up.eps == first.qkv.eps && l.gate_up.activation == first.gate_up.activation;
}

bool Fits(std::span<const ashlar_layer> layers) {
  const ashlar_layer& first = layers[0];
  const ashlar_dtype dtype = WeightType(first);
  if (dtype != ASHLAR_BF16 && dtype != ASHLAR_F8_E4M3) return false;
  return std::all_of(layers.begin(), layers.end(), [&](const ashlar_layer& l) {
    return std::all_of(kProducts.begin(), kProducts.end(),
                       [&](const auto product) { return HasWeight(l.*product, dtype); }) &&
           IsChain(l) && AreAligned(l) && IsLike(first, l);
  });
}

const float* Floats(const ashlar_tensor& t) { return static_cast<const float*>(t.data); }

LayerPlaces PlacesOf(const ashlar_layer& l) {
  LayerPlaces places{};
  for (size_t i = 0; i < kProducts.size(); ++i) {
    const ashlar_weight::Part& part = (l.*kProducts[i]).weight->parts[0];
    places.weight[i] = part.data;
    places.scale[i] = part.scales;
  }
  places.norm[0] = Floats(l.qkv.norm), places.norm[1] = Floats(l.gate_up.norm);
  places.bias[0] = Floats(l.qkv.bias), places.bias[1] = Floats(l.output.bias);
  places.q_norm = Floats(l.prepare.q_norm), places.k_norm = Floats(l.prepare.k_norm);
  places.inv_freq = l.prepare.inv_freq;
  places.kv_base = static_cast<char*>(l.prepare.kv.base);
  places.block_table = l.attention.block_table;
  places.slots = l.prepare.slots;
  places.table_stride = l.attention.table_stride;
  places.window = l.attention.window;
  return places;
}

LayersParams MakeParams(std::span<const ashlar_layer> layers, uint32_t* words) {
  const ashlar_layer& first = layers[0];
  LayersParams p{};
  p.layers = static_cast<int>(layers.size());
  p.tokens = first.attention.sequences;
  p.weights = WeightType(first);
  for (size_t i = 0; i < kProducts.size(); ++i) {
    const ashlar_projection& a = first.*kProducts[i];
    p.product[i] = {static_cast<int>(a.weight->rows), static_cast<int>(a.weight->cols),
                    a.weight->pitch};
  }
  p.eps = first.qkv.eps;
  p.activation = first.gate_up.activation;
  p.prepare = first.prepare;
  p.attention = first.attention;
  p.hidden = first.qkv.x.data;
  p.words = words;
  for (size_t i = 0; i < layers.size(); ++i) p.layer[i] = PlacesOf(layers[i]);
  return p;
}

}  // namespace

int Layers(ashlar_device* device, ashlar_stream* stream, const ashlar_layer* layers, int32_t count,
           int32_t* taken) {
  *taken = 0;
  if (device->layers == nullptr || count < 1 || count > kMostLayers) return ASHLAR_OK;
  if (!IsForFewTokens(layers[0].attention)) return ASHLAR_OK;
  const std::span<const ashlar_layer> all(layers, static_cast<size_t>(count));
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string problem = CheckLayer(all[i]);
    if (!problem.empty()) return Failed("layer " + std::to_string(i) + ": " + problem);
  }
  if (!Fits(all)) return ASHLAR_OK;
  const LayersParams p = MakeParams(all, device->layer_words);
  if (!device->layers->Takes(p)) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "layers") != ASHLAR_OK) return ASHLAR_FAILED;
  for (const ashlar_layer& l : all) ++device->launches[static_cast<size_t>(l.row)];
  *taken = 1;
  return Checked(device->layers->Launch(StreamOf(device, stream), p), "layers");
}

}  // namespace ashlar::gpu_kernels
