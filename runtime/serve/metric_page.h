// A page in Prometheus text format, put together series by series under the rows of kMetrics.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "serve/metric_histogram.h"
#include "serve/metric_table.h"

namespace ashlar {

class MetricPage {
 public:
  // Samples that a page may hold; later ones are left out and counted.
  static constexpr int kMostSeries = 2000;

  MetricPage();

  // `labels` in the order of the row.
  void Add(MetricId id, std::vector<std::string> labels, double value);
  void Add(MetricId id, std::vector<std::string> labels, const MetricHistogram::Values& values);

  // The page; nothing is added after it.
  std::string Text();

 private:
  prometheus::ClientMetric* Series(MetricId id, std::vector<std::string> labels, int lines);

  std::vector<prometheus::MetricFamily> families_;
  int lines_ = 0;
  int dropped_ = 0;
};

}  // namespace ashlar
