// From rows of logits to ids, and references to ids of an earlier step. Sorts the whole row.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/shapes.h"
#include "device.h"
#include "ops.h"

namespace ashlar::reference {
namespace {

// The ids that may be drawn, best first, equals by id.
std::vector<int32_t> Ranked(const float* logits, int64_t vocab) {
  std::vector<int32_t> ids(static_cast<size_t>(vocab));
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(), [logits](int32_t a, int32_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  return ids;
}

int32_t DrawRow(const float* logits, int64_t vocab, const ashlar_draw& draw) {
  for (int64_t i = 0; i < vocab; ++i) {
    if (!std::isfinite(logits[i])) return -1;
  }
  if (draw.temperature <= 0 || !std::isfinite(1.0f / draw.temperature)) {
    return static_cast<int32_t>(std::max_element(logits, logits + vocab) - logits);
  }
  std::vector<int32_t> ids = Ranked(logits, vocab);
  if (draw.top_k > 0 && draw.top_k < vocab) ids.resize(static_cast<size_t>(draw.top_k));
  const double best = logits[ids[0]];
  std::vector<double> weights;
  weights.reserve(ids.size());
  for (int32_t id : ids) weights.push_back(std::exp((logits[id] - best) / draw.temperature));
  if (draw.top_p < 1) {
    const double enough = draw.top_p * std::accumulate(weights.begin(), weights.end(), 0.0);
    double mass = 0;
    size_t kept = 0;
    while (kept < weights.size() && (kept == 0 || mass < enough)) mass += weights[kept++];
    weights.resize(kept);
  }
  while (weights.size() > 1 && weights.back() < draw.min_p) weights.pop_back();
  ids.resize(weights.size());
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&ids](size_t a, size_t b) { return ids[a] < ids[b]; });
  const double target = draw.uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  double mass = 0;
  for (size_t i : order) {
    mass += weights[i];
    if (target < mass) return ids[i];
  }
  return ids[order.back()];
}

}  // namespace

int Sample(ashlar_device*, ashlar_stream*, ashlar_tensor logits, const ashlar_draw* draws,
           int32_t* ids) {
  const std::string problem = CheckMatrix("sample logits", logits, -1, -1);
  if (!problem.empty()) return Failed(problem);
  for (int64_t row = 0; row < logits.shape[0]; ++row) {
    ids[row] = DrawRow(Row(logits, row), logits.shape[1], draws[row]);
  }
  return ASHLAR_OK;
}

int ResolveIds(ashlar_device*, ashlar_stream*, int32_t* ids, const int32_t* from, int32_t n) {
  for (int32_t i = 0; i < n; ++i) {
    if (ids[i] < 0) ids[i] = from[-1 - ids[i]];
  }
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
