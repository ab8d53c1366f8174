// Counts of values up to each bound, as a Prometheus histogram keeps them.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace ashlar {

// Any thread.
class MetricHistogram {
 public:
  explicit MetricHistogram(std::vector<double> bounds);
  void Observe(double value);
  struct Values {
    std::vector<double> bounds;
    std::vector<uint64_t> cumulative;  // one per bound
    uint64_t count = 0;
    double sum = 0;
  };
  Values values() const;

 private:
  mutable std::mutex mutex_;
  Values values_;
};

}  // namespace ashlar
