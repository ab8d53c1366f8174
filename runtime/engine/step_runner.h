// The device's half of a step: its arrays, the model over them, the ids that it samples.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "engine/batch.h"
#include "engine/engine.h"
#include "kv/arena.h"
#include "kv/prefix_cache.h"

namespace ashlar {

// Owned and called by the engine thread. Up to two steps may be under way; each has one of two
// turns.
class StepRunner {
 public:
  // The device, the arena and the cache outlive it. Without a `forward` it makes its own.
  static Result<std::unique_ptr<StepRunner>> Create(const Plan& plan, const Device& device,
                                                    ModelWeights weights, KvArena& arena,
                                                    const PrefixCache& cache,
                                                    const Engine::Options& options,
                                                    std::unique_ptr<Forward> forward);

  // The first step of a range of sizes is slow on a device where ops try how to run it best, and
  // what they find is kept for the range. So an idle step of the range's top comes before any
  // other. Runs the largest ones: what ops keep for themselves is made before any graph is.
  Status Warm();
  // Runs the next of the others, while no step is under way.
  Status WarmNext();
  int cold() const { return cold_; }  // sizes that have not run
  // Sizes and shapes that have run, and graphs that were made: a step beside which there are more
  // is slow.
  int firsts() const {
    return static_cast<int>(sizes_.size() + seen_.size() + graphs_.size()) - cold_;
  }

  struct Started {
    int turn = 0;
    Tensor logits;  // [rows of logits, vocab] on the device, once the step is done
  };
  // Puts the model over the slices on the stream; with `sample` a token for every row of logits
  // too, and its way back to the host.
  Result<Started> Start(std::span<const Slice> slices, bool sample);
  // The logits where the host may read and write. Waits for the step.
  Result<std::span<float>> HostLogits(const Tensor& logits);

  Status Wait(int turn);
  // By row of logits, after Wait; -1 where the logits were not finite.
  std::span<const int32_t> ids(int turn) const { return batch_->fetched(turn); }

 private:
  StepRunner(const Plan& plan, const Device& device, ModelWeights weights, KvArena& arena,
             const Engine::Options& options);
  Result<Tensor> RunSlices(std::span<const Slice> slices, bool sample);
  Result<Tensor> RunGraph(std::span<const Slice> slices, const StepShape& shape);
  Result<Tensor> Run(const StepArrays& arrays, bool sample);
  void ListSizes();
  void AddSize(int tokens);
  struct Size {
    StepShape top;
    bool ran = false;
  };
  Status RunTop(Size& size, bool sample);

  const Plan& plan_;
  const Device& device_;
  ModelWeights weights_;
  KvArena& arena_;
  Engine::Options options_;
  std::unique_ptr<Batch> batch_;
  std::unique_ptr<Forward> forward_;
  std::array<Mark, 2> ends_;  // of the steps under way, by turn
  int turn_ = 0;
  std::map<int, Size> sizes_;  // by the tokens of the top; none where nothing is tried
  int cold_ = 0;
  std::map<StepShape, Graph> graphs_;
  std::set<StepShape> seen_;        // run once, which makes what a capture may not make
  std::vector<float> host_logits_;  // when the host cannot read device memory
};

}  // namespace ashlar
