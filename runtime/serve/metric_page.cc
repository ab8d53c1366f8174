#include "serve/metric_page.h"

#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>

#include "base/check.h"

namespace ashlar {

MetricPage::MetricPage() {
  for (const MetricRow& row : kMetrics) {
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = row.name;
    family.help = row.help;
    family.type = row.type == MetricType::kGauge     ? prometheus::MetricType::Gauge
                  : row.type == MetricType::kCounter ? prometheus::MetricType::Counter
                                                     : prometheus::MetricType::Histogram;
  }
}

void MetricPage::Add(MetricId id, std::vector<std::string> labels, double value) {
  prometheus::ClientMetric* metric = Series(id, std::move(labels), 1);
  if (metric == nullptr) return;
  metric->gauge.value = value;
  metric->counter.value = value;
}

void MetricPage::Add(MetricId id, std::vector<std::string> labels,
                     const MetricHistogram::Values& values) {
  int lines = static_cast<int>(values.bounds.size()) + 3;
  prometheus::ClientMetric* metric = Series(id, std::move(labels), lines);
  if (metric == nullptr) return;
  metric->histogram.sample_count = values.count;
  metric->histogram.sample_sum = values.sum;
  for (size_t i = 0; i < values.bounds.size(); ++i) {
    metric->histogram.bucket.push_back({values.cumulative[i], values.bounds[i]});
  }
  metric->histogram.bucket.push_back({values.count, std::numeric_limits<double>::infinity()});
}

std::string MetricPage::Text() {
  Add(MetricId::kSeriesDropped, {}, dropped_);
  // A family without a series would be a name without a value.
  std::erase_if(families_, [](const auto& family) { return family.metric.empty(); });
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families_);
  return out.str();
}

// Null when the page has no room for so many lines.
prometheus::ClientMetric* MetricPage::Series(MetricId id, std::vector<std::string> labels,
                                             int lines) {
  const MetricRow& row = kMetrics[static_cast<size_t>(id)];
  if (id != MetricId::kSeriesDropped && lines_ + lines > kMostSeries - 1) {
    dropped_ += lines;
    return nullptr;
  }
  lines_ += lines;
  prometheus::ClientMetric metric;
  std::string_view names = row.labels;
  for (std::string& value : labels) {
    size_t comma = names.find(',');
    metric.label.push_back({std::string(names.substr(0, comma)), std::move(value)});
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  }
  Check(names.empty(), "a series has every label of its row");
  auto& metrics = families_[static_cast<size_t>(id)].metric;
  metrics.push_back(std::move(metric));
  return &metrics.back();
}

}  // namespace ashlar
