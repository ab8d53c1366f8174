// Which kernels carry out a step of attention.
#include <algorithm>
#include <string_view>

#include "attention_launch.h"
#include "common/shapes.h"
#include "device.h"
#include "op_checks.h"
#include "ops.h"

namespace ashlar::gpu_kernels {
namespace {

bool IsNamed(int32_t row, std::string_view name) { return ThisPlatform().rows[row].name == name; }

// What carries out the long sequences of a row, or NULL where the portable kernel does.
Prefill* PrefillOf(ashlar_device* device, int32_t row, gpu::Stream stream) {
  const Platform& platform = ThisPlatform();
  if (IsNamed(row, platform.prefill)) return device->prefill.get();
  if (!IsNamed(row, platform.vendor)) return nullptr;
  if (!device->vendor_prefill) {
    if (gpu::IsCaptured(stream)) return nullptr;  // opening it allocates
    device->vendor_prefill = OpenVendorPrefill();
  }
  return device->vendor_prefill->get();
}

// Whether a call goes on with the one token that `prepare` is for: one launch may then do both, a
// head's attention before another's preparation.
bool Continues(const ashlar_qkv_prepare& prepare, const AttentionParams& p) {
  const ashlar_attention& a = p.args;
  const ashlar_tensor& q = prepare.q_out;
  return a.sequences == 1 && a.max_query == 1 && a.q.shape[0] == 1 && a.q.data == q.data &&
         a.q.dtype == q.dtype && a.q.shape[1] == q.shape[1] && IsSame(a.kv, prepare.kv) &&
         a.out.dtype == q.dtype && p.aligned_out && IsApart(a.out, prepare.qkv) &&
         IsApart(a.out, q) && IsApart(q, prepare.qkv);
}

int Log2(int value) {
  for (int shift = 0; shift < 31; ++shift) {
    if (value == 1 << shift) return shift;
  }
  return -1;
}

bool Aligned(const void* base, int64_t strides) {
  return (static_cast<int64_t>(reinterpret_cast<uintptr_t>(base)) | strides) % 16 == 0;
}

gpu::Error Launch(ashlar_dtype stored, const AttentionLaunch& launch, gpu::Stream stream,
                  const AttentionParams& p) {
  switch (stored) {
    case ASHLAR_BF16:
      return LaunchAttentionBF16(launch, stream, p);
    case ASHLAR_F16:
      return LaunchAttentionF16(launch, stream, p);
    default:
      return LaunchAttentionF8(launch, stream, p);
  }
}

}  // namespace

std::string CheckAttention(int32_t row, const ashlar_attention& a) {
  const Platform& platform = ThisPlatform();
  if (row < 0 || row >= platform.row_count) return "attention: no such row";
  if (!IsNamed(row, platform.paged) && !IsNamed(row, platform.prefill) &&
      !IsNamed(row, platform.vendor)) {
    return std::string("attention: ") + platform.rows[row].name + " has no kernel yet";
  }
  std::string problem = CheckKv(a.kv, kKvDtypes);
  if (problem.empty() && a.kv.head_dim_v != a.kv.head_dim) problem = "K and V heads differ in size";
  if (problem.empty()) problem = CheckHeads("q", a.q, -1, -1, a.kv.head_dim, kFloats);
  if (problem.empty()) {
    problem = CheckHeads("out", a.out, a.q.shape[0], a.q.shape[1], a.kv.head_dim, kFloats);
  }
  if (!problem.empty()) return "attention: " + problem;
  const auto* sizes = kAttentionHeadSizes;
  if (std::find(sizes, std::end(kAttentionHeadSizes), a.kv.head_dim) ==
      std::end(kAttentionHeadSizes)) {
    return "attention: head size " + std::to_string(a.kv.head_dim);
  }
  if (a.q.shape[1] < 1 || a.q.shape[1] % a.kv.kv_heads != 0) {
    return "attention: " + std::to_string(a.q.shape[1]) + " query heads over " +
           std::to_string(a.kv.kv_heads) + " KV heads";
  }
  if (a.sequences < 0 || a.window < 0) return "attention: negative sequences or window";
  if (!(a.scale > 0)) return "attention: scale is not positive";
  return "";
}

bool IsSame(const ashlar_kv_view& a, const ashlar_kv_view& b) {
  return a.base == b.base && a.block_stride == b.block_stride && a.head_stride == b.head_stride &&
         a.token_stride == b.token_stride && a.blocks == b.blocks && a.dtype == b.dtype &&
         a.block_tokens == b.block_tokens && a.kv_heads == b.kv_heads && a.head_dim == b.head_dim;
}

bool IsApart(const ashlar_tensor& a, const ashlar_tensor& b) {
  const auto from = [](const ashlar_tensor& t) { return reinterpret_cast<uintptr_t>(t.data); };
  const auto after = [&](const ashlar_tensor& t) {
    return from(t) + static_cast<uintptr_t>(t.shape[0] * t.stride[0]);
  };
  return after(a) <= from(b) || after(b) <= from(a);
}

int Attention(ashlar_device* device, ashlar_stream* stream, int32_t row,
              const ashlar_attention* args) {
  const std::string problem = CheckAttention(row, *args);
  if (!problem.empty()) return Failed(problem);
  ++device->launches[static_cast<size_t>(row)];
  if (args->sequences == 0 || args->q.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "attention") != ASHLAR_OK) return ASHLAR_FAILED;

  AttentionParams p{};
  p.args = *args;
  p.group = static_cast<int>(args->q.shape[1] / args->kv.kv_heads);
  p.scale_log2 = args->scale * 1.4426950408889634f;
  p.block_shift = Log2(args->kv.block_tokens);
  const ashlar_kv_view& kv = args->kv;
  p.aligned = Aligned(kv.base, kv.block_stride | kv.head_stride | kv.token_stride);
  p.aligned_q = Aligned(args->q.data, args->q.stride[0]);
  p.aligned_out = Aligned(args->out.data, args->out.stride[0]);

  if (device->held && device->held->stream == stream && Continues(device->held->args, p)) {
    const ashlar_qkv_prepare prepare = device->held->args;
    device->held.reset();
    return Checked(device->step->Launch(StreamOf(device, stream), prepare, p), "attention");
  }
  AttentionLaunch launch;
  launch.wave = device->facts.wave;
  launch.multiprocessors = device->facts.multiprocessors;
  // A batch-invariant result takes one kernel for every length. A group of more heads than a tile
  // has rows fills the other kernel even with one token.
  const bool lone_prompt = args->sequences == 1 && args->max_query * p.group > kTile;
  launch.decode = !device->invariant && p.group <= kTile && !lone_prompt;
  launch.tiles = !launch.decode || args->max_query * p.group > kTile;
  p.only_long = launch.decode;
  Prefill* const prefill =
      launch.tiles ? PrefillOf(device, row, StreamOf(device, stream)) : nullptr;
  if (prefill != nullptr) {
    p.parts = static_cast<float*>(device->Scratch(prefill->PartsBytes()));
    if (p.parts == nullptr) return Failed("attention: out of memory for the parts of a sum");
    gpu::Error error = gpu::kSuccess;
    launch.tiles = !prefill->Launch(StreamOf(device, stream), p, &error);
    if (error != gpu::kSuccess) return Checked(error, "attention");
  }
  if (launch.decode) {
    const int64_t parts = DecodeBlocks(launch.multiprocessors) * PartFloats(kv.head_dim);
    p.parts = static_cast<float*>(device->Scratch(parts * int64_t{sizeof(float)}));
    p.arrivals = device->Counters(int64_t{args->sequences} * kv.kv_heads);
    if (p.parts == nullptr || p.arrivals == nullptr) {
      return Failed("attention: out of memory for the parts of a sum");
    }
  }
  return Checked(Launch(kv.dtype, launch, StreamOf(device, stream), p), "attention");
}

}  // namespace ashlar::gpu_kernels
