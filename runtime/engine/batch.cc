#include "engine/batch.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/checked.h"
#include "engine/sampler.h"

namespace ashlar {
namespace {

constexpr int64_t kAlignment = 64;  // each array begins on a cache line

constexpr int64_t kLeastStride = 64;
constexpr int kPromptTokens = 64;    // between shapes of prompts: what kernels work in
constexpr int kLongestPrompt = 256;  // beyond it tokens cost more than weights: none run in vain
constexpr ashlar_draw kGreedy{.temperature = 0, .top_k = 0, .top_p = 1, .min_p = 0, .uniform = 0};

int64_t Padded(int64_t count, int64_t size) { return RoundUp(count * size, kAlignment); }

// Few enough that their graphs are soon made, close enough that little is run in vain.
int DecodeSize(int sequences) {
  if (sequences <= 4) return std::bit_ceil(static_cast<unsigned>(sequences));
  if (sequences <= 64) return static_cast<int>(RoundUp<int64_t>(sequences, 8));
  return static_cast<int>(RoundUp<int64_t>(sequences, 32));
}

// In kernel blocks.
int64_t LongestTable(std::span<const Slice> slices, int group) {
  int64_t longest = 1;
  for (const Slice& slice : slices) {
    longest = std::max(longest, slice.sequence->tables[static_cast<size_t>(group)].kernel_blocks());
  }
  return longest;
}

ashlar_draw DrawOf(const Sequence& sequence) {
  const Sampling& sampling = sequence.request.sampling;
  if (sampling.temperature <= 0) return kGreedy;
  return {sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p,
          UniformAt(sequence.seed, static_cast<uint64_t>(sequence.generated()))};
}

}  // namespace

Batch::Batch(const Device& device, const PrefixCache& cache, const Limits& limits)
    : device_(device), cache_(cache), limits_(limits) {
  arrays_.input.groups.resize(static_cast<size_t>(cache.groups()));
  for (std::vector<Table>& tables : tables_) tables.resize(static_cast<size_t>(cache.groups()));
}

Result<std::unique_ptr<Batch>> Batch::Create(const Device& device, const PrefixCache& cache,
                                             const Limits& limits) {
  std::unique_ptr<Batch> batch(new Batch(device, cache, limits));
  auto take = [&device](Buffer& to, int64_t bytes) -> Status {
    auto buffer = device.Alloc(bytes);
    if (!buffer.ok()) return buffer.problems();
    to = std::move(*buffer);
    return Done{};
  };
  auto take_host = [&device](HostBuffer& to, int64_t bytes) -> Status {
    auto buffer = device.AllocHost(bytes);
    if (!buffer.ok()) return buffer.problems();
    to = std::move(*buffer);
    return Done{};
  };
  const int64_t ids = int64_t{limits.logit_rows} * static_cast<int64_t>(sizeof(int32_t));
  if (auto done = take(batch->buffer_, batch->LargestStepBytes()); !done.ok()) {
    return done.problems();
  }
  if (auto done = take(batch->sampled_, ids); !done.ok()) return done.problems();
  for (size_t turn = 0; turn < 2; ++turn) {
    if (auto done = take_host(batch->fetched_[turn], ids); !done.ok()) return done.problems();
    if (device.plugin().memory() == "host") continue;
    auto done = take_host(batch->staging_[turn], batch->buffer_.bytes());
    if (!done.ok()) return done.problems();
  }
  return batch;
}

int64_t Batch::LargestStride(int group) const {
  const KvGroupShape& shape = cache_.shape(group);
  return CeilDiv<int64_t>(limits_.context_tokens, shape.block_tokens) *
         (shape.block_tokens / shape.kernel_block_tokens);
}

int64_t Batch::LargestStepBytes() const {
  const int64_t sequences = limits_.sequences, rows = limits_.logit_rows;
  const int64_t tokens = std::max<int64_t>(limits_.tokens, sequences);
  int64_t bytes = 2 * Padded(tokens, sizeof(int32_t)) + Padded(sequences + 1, sizeof(int32_t)) +
                  Padded(sequences, sizeof(int32_t)) + Padded(rows, sizeof(int32_t)) +
                  Padded(rows, sizeof(ashlar_draw));
  for (int g = 0; g < cache_.groups(); ++g) {
    bytes +=
        Padded(tokens, sizeof(int64_t)) + Padded(sequences * LargestStride(g), sizeof(int32_t));
  }
  return bytes;
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

std::optional<StepShape> Batch::ShapeFor(std::span<const Slice> slices) const {
  if (!std::ranges::all_of(slices, [](const Slice& slice) { return slice.logits == 1; })) return {};
  StepShape shape;
  if (std::ranges::all_of(slices, [](const Slice& slice) { return slice.tokens == 1; })) {
    shape.sequences = std::min(DecodeSize(static_cast<int>(slices.size())), limits_.sequences);
    shape.tokens = shape.sequences;
  } else {
    if (slices.size() > 1) return {};
    shape.tokens = RoundUp(slices[0].tokens, kPromptTokens);
    shape.sequences = shape.tokens > slices[0].tokens ? 2 : 1;
    if (shape.tokens > std::min(kLongestPrompt, limits_.tokens)) return {};
    if (shape.sequences > std::min(limits_.sequences, limits_.logit_rows)) return {};
  }
  for (int g = 0; g < cache_.groups(); ++g) {
    const auto longest = static_cast<uint64_t>(LongestTable(slices, g));
    const auto stride = static_cast<int64_t>(std::bit_ceil(longest));
    shape.table_strides.push_back(std::min(std::max(stride, kLeastStride), LargestStride(g)));
  }
  return shape;
}

StepShape Batch::IdleShape(int sequences, int tokens) const {
  StepShape shape{sequences, tokens, {}};
  const int longest = CeilDiv(tokens, sequences);
  for (int g = 0; g < cache_.groups(); ++g) {
    const int64_t blocks = CeilDiv<int64_t>(longest, cache_.shape(g).kernel_block_tokens);
    shape.table_strides.push_back(std::min(std::max(blocks, kLeastStride), LargestStride(g)));
  }
  return shape;
}

Result<const StepArrays*> Batch::Fill(std::span<const Slice> slices, const StepShape* shape) {
  used_ = 0;
  turn_ ^= 1;
  HostBuffer& staging = staging_[static_cast<size_t>(turn_)];
  const bool staged = staging.bytes() > 0;
  host_ = staged ? staging.data() : static_cast<std::byte*>(buffer_.data());
  FillTokens(slices, shape);
  for (int g = 0; g < cache_.groups(); ++g) FillGroup(slices, g, shape);
  if (staged) {
    auto copied = device_.CopyIn(buffer_.data(), std::span(host_, static_cast<size_t>(used_)));
    if (!copied.ok()) return copied.problems();
  }
  return &arrays_;
}

void Batch::FillTokens(std::span<const Slice> slices, const StepShape* shape) {
  StepInput& input = arrays_.input;
  input.sequences = static_cast<int>(slices.size());
  input.tokens = input.logit_rows = input.max_query = input.max_context = 0;
  for (const Slice& slice : slices) {
    input.tokens += slice.tokens;
    input.logit_rows += slice.logits;
    input.max_query = std::max(input.max_query, slice.tokens);
    input.max_context = std::max(input.max_context, slice.sequence->computed + slice.tokens);
  }
  int idle = 0, idle_tokens = 0;
  if (shape != nullptr) {
    idle = shape->sequences - input.sequences;
    idle_tokens = shape->tokens - input.tokens;
    input.sequences = shape->sequences;
    input.tokens = shape->tokens;
    input.logit_rows += idle;
    input.max_query = shape->tokens - shape->sequences + 1;  // whatever it is filled with
    if (idle > 0) input.max_context = std::max(input.max_context, CeilDiv(idle_tokens, idle));
  }
  const int32_t* ids_address = nullptr;
  int32_t* ids = Place(input.tokens, &ids_address);
  input.ids = ids_address;
  arrays_.ids = const_cast<int32_t*>(ids_address);
  int32_t* positions = Place(input.tokens, &input.positions);
  int32_t* query_start = Place(input.sequences + 1, &input.query_start);
  int32_t* context = Place(input.sequences, &input.context);
  int32_t* logit_tokens = Place(input.logit_rows, &input.logit_tokens);
  ashlar_draw* draws = Place(input.logit_rows, &arrays_.draws);
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
    draws = std::fill_n(draws, slice.logits, DrawOf(sequence));
  }
  for (; idle > 0; --idle) {
    const int own = CeilDiv(idle_tokens, idle);
    idle_tokens -= own;
    std::fill_n(ids + token, own, 0);
    std::iota(positions + token, positions + token + own, 0);
    token += own;
    *query_start++ = token;
    *context++ = own == 1 ? 0 : own;  // attention leaves out the single ones
    *logit_tokens++ = token - 1;
    *draws++ = kGreedy;
  }
}

void Batch::FillGroup(std::span<const Slice> slices, int group, const StepShape* shape) {
  StepInput& input = arrays_.input;
  GroupStep& step = input.groups[static_cast<size_t>(group)];
  if (shape != nullptr) {
    step.table_stride = shape->table_strides[static_cast<size_t>(group)];
    // A graph is launched for every context that its tables can hold.
    const int64_t reach = step.table_stride * cache_.shape(group).kernel_block_tokens;
    input.max_context = static_cast<int>(std::max<int64_t>(reach, input.max_context));
  } else {
    // Rounded up, so that rows mostly stay where they are while their sequences grow.
    step.table_stride =
        std::min(RoundUp(LongestTable(slices, group), kLeastStride), LargestStride(group));
  }
  int64_t* slots = Place(input.tokens, &step.slots);
  int64_t* const last_slot = slots + input.tokens;
  int32_t* at = Place(input.sequences * step.table_stride, &step.block_table);
  int32_t* const last_entry = at + input.sequences * step.table_stride;
  // Where the same table stood at the last fill, only what its sequences took since is written.
  Table& table = tables_[host_ == buffer_.data() ? 0 : turn_][static_cast<size_t>(group)];
  if (table.at != at || table.stride != step.table_stride) table = {at, step.table_stride, {}};
  table.rows.resize(slices.size());
  for (size_t i = 0; i < slices.size(); ++i, at += step.table_stride) {
    const Sequence& sequence = *slices[i].sequence;
    const BlockTable& blocks = sequence.tables[static_cast<size_t>(group)];
    for (int t = 0; t < slices[i].tokens; ++t) *slots++ = blocks.Slot(sequence.computed + t);
    Row& row = table.rows[i];
    if (row.sequence != sequence.id || row.admissions != sequence.admissions) {
      row = {sequence.id, sequence.admissions, 0};
      std::fill(at + blocks.kernel_blocks(), at + step.table_stride, kNullBlock);
    }
    blocks.CopyKernelBlocks(at, row.entries);
    row.entries = blocks.blocks().size();
  }
  std::fill(slots, last_slot, int64_t{-1});
  std::fill(at, last_entry, kNullBlock);
}

Status Batch::Fetch(int rows, int turn) const {
  const size_t bytes = static_cast<size_t>(rows) * sizeof(int32_t);
  return device_.CopyOut(std::span(fetched_[static_cast<size_t>(turn)].data(), bytes),
                         sampled_.data());
}

}  // namespace ashlar
