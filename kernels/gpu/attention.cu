// Which kernels carry out a step of attention, and how far its keys are divided.
#include <algorithm>
#include <string_view>

#include "attention_launch.h"
#include "device.h"
#include "ops.h"
#include "shapes.h"

namespace ashlar::gpu_kernels {
namespace {

constexpr int kSplitStep = 64;    // keys: a whole number of tiles of every shape
constexpr int kBlocksWanted = 4;  // for each multiprocessor, to keep memory busy
constexpr int64_t kMostSplits = 128;

bool IsNamed(int32_t row, std::string_view name) { return ThisPlatform().rows[row].name == name; }

std::string Check(int32_t row, const ashlar_attention& a) {
  const Platform& platform = ThisPlatform();
  if (row < 0 || row >= platform.row_count) return "attention: no such row";
  if (!IsNamed(row, platform.paged) && !IsNamed(row, platform.prefill)) {
    return std::string("attention: ") + platform.rows[row].name + " has no kernel yet";
  }
  std::string problem = CheckKv("attention", a.kv);
  if (problem.empty()) problem = CheckHeads("attention: q", a.q, -1, -1, a.kv.head_dim);
  if (problem.empty()) {
    problem = CheckHeads("attention: out", a.out, a.q.shape[0], a.q.shape[1], a.kv.head_dim);
  }
  if (!problem.empty()) return problem;
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
  return "";
}

int Log2(int value) {
  for (int shift = 0; shift < 31; ++shift) {
    if (value == 1 << shift) return shift;
  }
  return -1;
}

bool Aligned(const ashlar_kv_view& kv) {
  const auto base = static_cast<int64_t>(reinterpret_cast<uintptr_t>(kv.base));
  return (base | kv.block_stride | kv.head_stride | kv.token_stride) % 16 == 0;
}

// As many blocks as keep the device busy, each with at least kSplitStep keys.
void ChooseSplits(const ashlar_device& device, AttentionParams& p) {
  const int64_t blocks = int64_t{p.args.sequences} * p.args.kv.kv_heads;
  const int64_t keys = p.args.window > 0
                           ? std::min(p.args.max_context, p.args.window + p.args.max_query)
                           : p.args.max_context;
  const int64_t wanted =
      std::clamp<int64_t>(kBlocksWanted * device.facts.multiprocessors / blocks, 1, kMostSplits);
  int64_t each = (keys + wanted - 1) / wanted;
  each = std::max<int64_t>((each + kSplitStep - 1) / kSplitStep, 1) * kSplitStep;
  p.split_keys = static_cast<int>(each);
  p.splits = static_cast<int>((p.args.max_context + each - 1) / each);
}

}  // namespace

int Attention(ashlar_device* device, ashlar_stream* stream, int32_t row,
              const ashlar_attention* args) {
  const std::string problem = Check(row, *args);
  if (!problem.empty()) return Failed(problem);
  ++device->launches[static_cast<size_t>(row)];
  if (args->sequences == 0 || args->q.shape[0] == 0) return ASHLAR_OK;
  if (Checked(gpu::UseDevice(device->index), "attention") != ASHLAR_OK) return ASHLAR_FAILED;

  AttentionParams p{};
  p.args = *args;
  p.q_row_bytes = args->q.stride[0];
  p.out_row_bytes = args->out.stride[0];
  p.group = static_cast<int>(args->q.shape[1] / args->kv.kv_heads);
  p.scale_log2 = args->scale * 1.4426950408889634f;
  p.block_shift = Log2(args->kv.block_tokens);
  p.aligned = Aligned(args->kv);

  AttentionLaunch launch;
  launch.wave = device->facts.wave;
  // A batch-invariant result takes one kernel for every length. A group of more heads than a tile
  // has rows fills the other kernel even with one token.
  const bool lone_prompt = args->sequences == 1 && args->max_query * p.group > kTile;
  launch.splits = !device->invariant && p.group <= kTile && !lone_prompt;
  launch.tiles = !launch.splits || args->max_query * p.group > kTile;
  p.only_long = launch.splits;
  if (launch.tiles && IsNamed(row, ThisPlatform().prefill) && device->prefill != nullptr) {
    gpu::Error error = gpu::kSuccess;
    launch.tiles = !device->prefill->Launch(StreamOf(stream), p, &error);
    if (error != gpu::kSuccess) return Checked(error, "attention");
  }
  if (launch.splits) {
    ChooseSplits(*device, p);
    if (p.splits > 1) {
      const int64_t parts =
          int64_t{args->sequences} * args->kv.kv_heads * p.splits * kTile * (args->kv.head_dim + 2);
      p.parts = static_cast<float*>(device->Scratch(parts * int64_t{sizeof(float)}));
      if (p.parts == nullptr) return Failed("attention: out of memory for the parts of a sum");
    }
  }
  return Checked(args->kv.dtype == ASHLAR_BF16 ? LaunchAttentionBF16(launch, StreamOf(stream), p)
                                               : LaunchAttentionF16(launch, StreamOf(stream), p),
                 "attention");
}

}  // namespace ashlar::gpu_kernels
