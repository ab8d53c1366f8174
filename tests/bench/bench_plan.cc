// Time of MakePlan for a hybrid model of 61 layers among 30 rows: median and spread of many plans.
// Usage: bench_plan [plans]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "plan/plan.h"
#include "support/plan_builders.h"

namespace ashlar {
namespace {

// Three gated delta layers, then a full one, over and over; a sliding layer last.
ModelConfig Model() {
  ModelConfig model = testing::DenseModel();
  model.layers.clear();
  LayerSpec state;
  state.kind = KvKind::kMamba;
  state.states = {{{3, 8192}, DType::kBF16}, {{32, 128, 128}, DType::kBF16}};
  for (int i = 0; i < 60; ++i)
    model.layers.push_back(i % 4 == 3 ? testing::FullLayer(16, 2, 256) : state);
  model.layers.push_back(testing::SlidingLayer(1024, 16, 2, 256));
  model.context_length = 32'768;
  return model;
}

Platform Machine() {
  Platform platform = testing::CpuPlatform();
  platform.devices[0].free_bytes = int64_t{80} << 30;
  platform.rows.clear();
  // Half of them refuse the model, each for its own reason.
  for (int i = 0; i < 30; ++i) {
    AttentionRow row = testing::AnyRow("ROW_" + std::to_string(i));
    if (i % 4 == 0) row.head_sizes = {64, 128};
    if (i % 4 == 1) row.kv_dtypes = {DType::kF32};
    platform.rows.push_back(row);
  }
  return platform;
}

int Run(int plans) {
  ModelConfig model = Model();
  Platform platform = Machine();
  Spec spec = testing::BasicSpec();
  std::vector<double> micros;
  for (int i = 0; i < plans; ++i) {
    auto begin = std::chrono::steady_clock::now();
    Result<Plan> plan = MakePlan(spec, platform, model, {});
    auto end = std::chrono::steady_clock::now();
    if (!plan.ok()) {
      std::fprintf(stderr, "%s\n", Text(plan.problems()).c_str());
      return 1;
    }
    micros.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
  }
  std::sort(micros.begin(), micros.end());
  std::printf("61 layers, 30 rows, %d plans: median %.1f us, 5%% %.1f us, 95%% %.1f us\n", plans,
              micros[micros.size() / 2], micros[micros.size() / 20],
              micros[micros.size() * 19 / 20]);
  return 0;
}

}  // namespace
}  // namespace ashlar

int main(int argc, char** argv) {
  int plans = argc > 1 ? std::atoi(argv[1]) : 2000;
  return plans > 0 ? ashlar::Run(plans) : 2;
}
