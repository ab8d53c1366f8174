#include "serve/metric_histogram.h"

#include <utility>

namespace ashlar {

MetricHistogram::MetricHistogram(std::vector<double> bounds) {
  values_.cumulative.resize(bounds.size());
  values_.bounds = std::move(bounds);
}

void MetricHistogram::Observe(double value) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < values_.bounds.size(); ++i) {
    if (value <= values_.bounds[i]) ++values_.cumulative[i];
  }
  ++values_.count;
  values_.sum += value;
}

MetricHistogram::Values MetricHistogram::values() const {
  std::lock_guard lock(mutex_);
  return values_;
}

}  // namespace ashlar
