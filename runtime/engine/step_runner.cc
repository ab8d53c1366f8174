#include "engine/step_runner.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace ashlar {
namespace {

// Where kernels change (kernels/cuda/blas.cc): the top of the range of sizes after that which ends
// with `tokens`.
int NextTop(int tokens) {
  if (tokens < 64) return 2 * tokens;
  return tokens + (tokens < 1024 ? 16 : 128);
}

}  // namespace

StepRunner::StepRunner(const Plan& plan, const Device& device, ModelWeights weights, KvArena& arena,
                       const Engine::Options& options)
    : plan_(plan),
      device_(device),
      weights_(std::move(weights)),
      arena_(arena),
      options_(options) {}

Result<std::unique_ptr<StepRunner>> StepRunner::Create(const Plan& plan, const Device& device,
                                                       ModelWeights weights, KvArena& arena,
                                                       const PrefixCache& cache,
                                                       const Engine::Options& options,
                                                       std::unique_ptr<Forward> forward) {
  std::unique_ptr<StepRunner> runner(
      new StepRunner(plan, device, std::move(weights), arena, options));
  const int logit_rows = Engine::LogitRows(options);
  auto batch =
      Batch::Create(device, cache,
                    {options.max_sequences, options.batch_tokens, logit_rows, plan.context_length});
  if (!batch.ok()) return batch.problems();
  runner->batch_ = std::move(*batch);
  for (Mark& end : runner->ends_) {
    auto mark = device.CreateMark();
    if (!mark.ok()) return mark.problems();
    end = std::move(*mark);
  }
  if (forward) {
    runner->forward_ = std::move(forward);
    return runner;
  }
  auto made = Forward::Create(plan.model, device, options.batch_tokens, logit_rows);
  if (!made.ok()) return made.problems();
  runner->forward_ = std::move(*made);
  return runner;
}

void StepRunner::AddSize(int tokens) {
  if (tokens <= options_.max_sequences) {
    sizes_[tokens].top = batch_->IdleShape(tokens, tokens);
    return;
  }
  const int64_t most = plan_.context_length * options_.max_sequences;
  const auto filled = static_cast<int>(std::min<int64_t>(tokens, most));
  const auto prompts = static_cast<int>(CeilDiv<int64_t>(filled, plan_.context_length));
  sizes_[tokens].top = batch_->IdleShape(prompts, filled);
}

void StepRunner::ListSizes() {
  for (int tokens = 1; tokens < options_.batch_tokens; tokens = NextTop(tokens)) AddSize(tokens);
  AddSize(options_.batch_tokens);
  AddSize(options_.max_sequences);
  cold_ = static_cast<int>(sizes_.size());
}

Status StepRunner::Warm() {
  if (device_.plugin().memory() == "host") return Done{};
  ListSizes();
  for (int tokens : {options_.batch_tokens, options_.max_sequences}) {
    if (auto done = RunTop(sizes_[tokens], true); !done.ok()) return done;
  }
  return Done{};
}

Status StepRunner::WarmNext() {
  auto next = std::ranges::find_if(sizes_, [](const auto& size) { return !size.second.ran; });
  return RunTop(next->second, true);
}

Status StepRunner::RunTop(Size& size, bool sample) {
  if (size.ran) return Done{};
  size.ran = true;
  --cold_;
  auto arrays = batch_->Fill({}, &size.top);
  if (!arrays.ok()) return arrays.problems();
  if (auto run = Run(**arrays, sample); !run.ok()) return run.problems();
  return device_.Sync();
}

Result<StepRunner::Started> StepRunner::Start(std::span<const Slice> slices, bool sample) {
  auto logits = RunSlices(slices, sample);
  if (!logits.ok()) return logits.problems();
  const Started started{turn_ ^= 1, *logits};
  if (sample) {
    const int rows = static_cast<int>(logits->shape[0]);
    if (auto fetched = batch_->Fetch(rows, started.turn); !fetched.ok()) return fetched.problems();
  }
  auto marked = device_.Record(ends_[static_cast<size_t>(started.turn)]);
  if (!marked.ok()) return marked.problems();
  return started;
}

Result<Tensor> StepRunner::RunSlices(std::span<const Slice> slices, bool sample) {
  if (cold_ > 0) {
    int tokens = 0;
    for (const Slice& slice : slices) tokens += slice.tokens;
    // Without samples: this step may need those of the step under way.
    auto ready = RunTop(sizes_.lower_bound(tokens)->second, false);
    if (!ready.ok()) return ready.problems();
  }
  if (sample && device_.has_graphs()) {
    if (const auto shape = batch_->ShapeFor(slices)) return RunGraph(slices, *shape);
  }
  auto arrays = batch_->Fill(slices);
  if (!arrays.ok()) return arrays.problems();
  return Run(**arrays, sample);
}

// Once as it is, from then on as a graph.
Result<Tensor> StepRunner::RunGraph(std::span<const Slice> slices, const StepShape& shape) {
  auto arrays = batch_->Fill(slices, &shape);
  if (!arrays.ok()) return arrays.problems();
  if (seen_.insert(shape).second) return Run(**arrays, true);
  auto graph = graphs_.find(shape);
  if (graph == graphs_.end()) {
    auto captured = device_.Capture([&]() -> Status {
      auto logits = Run(**arrays, true);
      if (!logits.ok()) return logits.problems();
      return Done{};
    });
    if (!captured.ok()) return captured.problems();
    graph = graphs_.emplace(shape, std::move(*captured)).first;
  }
  if (auto launched = device_.Launch(graph->second); !launched.ok()) return launched.problems();
  return forward_->Logits((*arrays)->input);
}

Result<Tensor> StepRunner::Run(const StepArrays& arrays, bool sample) {
  if (device_.has_sample()) {
    auto resolved = device_.ResolveIds(arrays.ids, batch_->sampled(), arrays.input.tokens);
    if (!resolved.ok()) return resolved.problems();
  }
  auto logits = forward_->Run(weights_, arena_.layers(), arrays.input);
  if (!logits.ok() || !sample || !device_.has_sample()) return logits;
  auto sampled = device_.Sample(*logits, arrays.draws, batch_->sampled());
  if (!sampled.ok()) return sampled.problems();
  return logits;
}

Result<std::span<float>> StepRunner::HostLogits(const Tensor& logits) {
  const size_t count = static_cast<size_t>(logits.shape[0] * logits.shape[1]);
  if (device_.plugin().memory() == "host") {
    if (auto done = device_.Sync(); !done.ok()) return done.problems();
    return std::span(static_cast<float*>(logits.data), count);
  }
  host_logits_.resize(std::max(host_logits_.size(), count));
  std::span<float> host(host_logits_.data(), count);
  if (auto copied = device_.CopyOut(std::as_writable_bytes(host), logits.data); !copied.ok()) {
    return copied.problems();
  }
  if (auto done = device_.Sync(); !done.ok()) return done.problems();
  return host;
}

Status StepRunner::Wait(int turn) { return device_.Wait(ends_[static_cast<size_t>(turn)]); }

}  // namespace ashlar
