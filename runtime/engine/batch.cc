#include "engine/batch.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/checked.h"

namespace ashlar {
namespace {

constexpr int64_t kAlignment = 64;  // each array begins on a cache line

int64_t Padded(int64_t count, int64_t size) { return RoundUp(count * size, kAlignment); }

int64_t LargestStepBytes(const PrefixCache& cache, const Batch::Limits& limits) {
  int64_t bytes = 2 * Padded(limits.tokens, 4) + Padded(limits.sequences + 1, 4) +
                  Padded(limits.sequences, 4) + Padded(limits.logit_rows, 4);
  for (int g = 0; g < cache.groups(); ++g) {
    const KvGroupShape& shape = cache.shape(g);
    int64_t kernel_blocks = CeilDiv<int64_t>(limits.context_tokens, shape.block_tokens) *
                            (shape.block_tokens / shape.kernel_block_tokens);
    bytes += Padded(limits.tokens, 8) + Padded(limits.sequences * kernel_blocks, 4);
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Batch>> Batch::Create(const Device& device, const PrefixCache& cache,
                                             const Limits& limits) {
  std::unique_ptr<Batch> batch(new Batch(device));
  auto buffer = device.Alloc(LargestStepBytes(cache, limits));
  if (!buffer.ok()) return buffer.problems();
  batch->buffer_ = std::move(*buffer);
  if (device.plugin().memory() == "host") {
    batch->host_ = static_cast<std::byte*>(batch->buffer_.data());
  } else {
    batch->staging_.resize(static_cast<size_t>(batch->buffer_.bytes()));
    batch->host_ = batch->staging_.data();
  }
  batch->input_.groups.resize(static_cast<size_t>(cache.groups()));
  return batch;
}

template <class T>
T* Batch::Place(int64_t count, const T** device_address) {
  int64_t offset = used_;
  used_ += Padded(count, sizeof(T));
  Check(used_ <= buffer_.bytes(), "a step's arrays fit what was allocated");
  *device_address =
      reinterpret_cast<const T*>(static_cast<const std::byte*>(buffer_.data()) + offset);
  return reinterpret_cast<T*>(host_ + offset);
}

Result<const StepInput*> Batch::Fill(std::span<const Slice> slices) {
  used_ = 0;
  FillTokens(slices);
  for (size_t g = 0; g < input_.groups.size(); ++g) FillGroup(slices, static_cast<int>(g));
  if (!staging_.empty()) {
    auto copied =
        device_.CopyIn(buffer_.data(), std::span(staging_).first(static_cast<size_t>(used_)));
    if (!copied.ok()) return copied.problems();
  }
  return &input_;
}

void Batch::FillTokens(std::span<const Slice> slices) {
  input_.sequences = static_cast<int>(slices.size());
  input_.tokens = input_.logit_rows = input_.max_query = input_.max_context = 0;
  for (const Slice& slice : slices) {
    input_.tokens += slice.tokens;
    input_.logit_rows += slice.logits;
    input_.max_query = std::max(input_.max_query, slice.tokens);
    input_.max_context = std::max(input_.max_context, slice.sequence->computed + slice.tokens);
  }
  int32_t* ids = Place(input_.tokens, &input_.ids);
  int32_t* positions = Place(input_.tokens, &input_.positions);
  int32_t* query_start = Place(input_.sequences + 1, &input_.query_start);
  int32_t* context = Place(input_.sequences, &input_.context);
  int32_t* logit_tokens = Place(input_.logit_rows, &input_.logit_tokens);
  int32_t token = 0;
  *query_start++ = 0;
  for (const Slice& slice : slices) {
    const Sequence& sequence = *slice.sequence;
    std::copy_n(sequence.tokens.begin() + sequence.computed, slice.tokens, ids + token);
    std::iota(positions + token, positions + token + slice.tokens, sequence.computed);
    token += slice.tokens;
    *query_start++ = token;
    *context++ = sequence.computed + slice.tokens;
    std::iota(logit_tokens, logit_tokens + slice.logits, token - slice.logits);
    logit_tokens += slice.logits;
  }
}

void Batch::FillGroup(std::span<const Slice> slices, int group) {
  GroupStep& step = input_.groups[group];
  step.table_stride = 0;
  for (const Slice& slice : slices) {
    step.table_stride = std::max(step.table_stride, slice.sequence->tables[group].kernel_blocks());
  }
  int64_t* slots = Place(input_.tokens, &step.slots);
  int32_t* table = Place(input_.sequences * step.table_stride, &step.block_table);
  for (const Slice& slice : slices) {
    const BlockTable& blocks = slice.sequence->tables[group];
    for (int i = 0; i < slice.tokens; ++i) *slots++ = blocks.Slot(slice.sequence->computed + i);
    blocks.CopyKernelBlocks(table);
    std::fill(table + blocks.kernel_blocks(), table + step.table_stride, kNullBlock);
    table += step.table_stride;
  }
}

}  // namespace ashlar
