#include "serve/metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "serve/metric_page.h"
#include "support/http_api_fixture.h"

namespace ashlar {
namespace {

using test::HttpAnswer;

// Each line of a page that is a sample.
std::vector<std::string> Samples(const std::string& page) {
  std::vector<std::string> samples;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') samples.push_back(line);
  }
  return samples;
}

std::string SeriesOf(const std::string& sample) { return sample.substr(0, sample.rfind(' ')); }

TEST(MetricTable, FollowsTheRulesOfNames) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kMetrics.size(); ++i) {
    const MetricRow& row = kMetrics[i];
    EXPECT_EQ(static_cast<size_t>(row.id), i) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.type == MetricType::kCounter, row.name.ends_with("_total")) << row.name;
    EXPECT_TRUE(row.name.starts_with("ashlar_") || row.name.starts_with("vllm:")) << row.name;
    EXPECT_TRUE(row.help.ends_with('.')) << row.name;
    if (row.name.ends_with("_info")) {
      EXPECT_EQ(row.type, MetricType::kGauge) << row.name;
    }
  }
}

TEST(MetricTable, IsRepeatedInTheDocs) {
  std::ifstream file(ASHLAR_SOURCE_DIR "/docs/api.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const MetricRow& row : kMetrics) {
    EXPECT_NE(text.str().find("`" + std::string(row.name) + "`"), std::string::npos) << row.name;
  }
  for (const ErrorRow& row : kErrors) {
    EXPECT_NE(text.str().find("`" + std::string(row.name) + "`"), std::string::npos) << row.name;
  }
}

TEST(MetricHistogram, CountsUpToEachBound) {
  MetricHistogram histogram({1, 10});
  for (double value : {0.5, 1.0, 5.0, 100.0}) histogram.Observe(value);
  MetricHistogram::Values values = histogram.values();
  EXPECT_EQ(values.cumulative, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(values.count, 4u);
  EXPECT_EQ(values.sum, 106.5);
}

TEST(Metrics, APageIsBoundedAndSaysWhatItLeftOut) {
  Plan plan = test::ToyPlan();
  KvGroup group = plan.groups[0];
  for (int i = 0; i < 300; ++i) {
    group.name = "group" + std::to_string(i);
    plan.groups.push_back(group);
  }
  Metrics metrics;
  metrics.SetPlan(plan);
  std::string page = metrics.Render({});
  EXPECT_LE(Samples(page).size(), static_cast<size_t>(MetricPage::kMostSeries));
  EXPECT_EQ(page.find("ashlar_metric_series_dropped 0\n"), std::string::npos);
  EXPECT_NE(page.find("ashlar_metric_series_dropped "), std::string::npos);
  // With the groups of a real model nothing is left out.
  Metrics usual;
  plan.groups.resize(8);
  usual.SetPlan(plan);
  EXPECT_NE(usual.Render({}).find("ashlar_metric_series_dropped 0\n"), std::string::npos);
}

class MetricsTest : public test::ApiFixture {
 protected:
  std::set<std::string> Series() {
    std::set<std::string> series;
    for (const std::string& sample : Samples(Get("/metrics").body)) {
      EXPECT_TRUE(series.insert(SeriesOf(sample)).second) << sample;
    }
    return series;
  }
};

TEST_F(MetricsTest, EverySeriesIsThereFromTheStartWithZero) {
  OpenReady();
  std::set<std::string> before = Series();
  Complete({});
  Chat({{"stream", true}});
  Complete({{"n", 99}});
  Get("/v1/models");
  EXPECT_EQ(Series(), before);
  std::string page = Get("/metrics").body;
  for (const MetricRow& row : kMetrics) {
    if (row.id == MetricId::kStartupPhase || row.id == MetricId::kSelfTestError ||
        row.id == MetricId::kSelfTestTolerance) {
      continue;  // set by main
    }
    EXPECT_NE(page.find("# TYPE " + std::string(row.name) + " "), std::string::npos) << row.name;
    EXPECT_NE(page.find("# HELP " + std::string(row.name) + " "), std::string::npos) << row.name;
  }
}

TEST_F(MetricsTest, ShowsSelectionAndCacheOfEachGroup) {
  OpenReady();
  server_->SetSelfTest({{"full_attention", 0, "CPU_PAGED", 0.25, 0.5}});
  server_->SetStartupPhase("weights", 1.5);
  EXPECT_EQ(
      Metric("ashlar_attention_backend_info{model_name=\"toy\",group=\"sliding_window\",attn=\"0\","
             "kind=\"sliding_window\",backend=\"CPU_WINDOW\",requested=\"auto\","
             "reason=\"rank 0 of 2 valid\",dtype=\"bfloat16\",head_dim=\"32\",block_size=\"16\","
             "kernel_block_size=\"16\",layout=\"LBHNC\"}"),
      1);
  EXPECT_EQ(Metric("ashlar_attention_backend_rejections{group=\"full_attention\",attn=\"0\","
                   "backend=\"OTHER\",reason=\"other_device\"}"),
            1);
  EXPECT_EQ(Metric("ashlar_kv_group_block_tokens{group=\"full_attention\",stage=\"requested\"}"),
            0);
  EXPECT_EQ(Metric("ashlar_kv_group_block_tokens{group=\"full_attention\",stage=\"effective\"}"),
            16);
  EXPECT_EQ(Metric("ashlar_kv_group_block_tokens{group=\"full_attention\",stage=\"kernel\"}"), 16);
  EXPECT_EQ(Metric("ashlar_kv_cache_block_tokens"), 16);
  EXPECT_EQ(Metric("ashlar_kv_hash_block_tokens"), 8);
  EXPECT_EQ(Metric("ashlar_kv_scheduler_block_tokens"), 32);
  EXPECT_EQ(Metric("ashlar_kv_group_blocks{group=\"sliding_window\",kind=\"sliding_window\","
                   "tier=\"device\"}"),
            1000);
  EXPECT_EQ(Metric("ashlar_self_test_error_ratio{group=\"full_attention\",attn=\"0\",backend=\"CPU_"
                   "PAGED\"}"),
            0.25);
  EXPECT_EQ(Metric("ashlar_self_test_tolerance_ratio{group=\"full_attention\",attn=\"0\",backend="
                   "\"CPU_PAGED\"}"),
            0.5);
  EXPECT_EQ(Metric("ashlar_startup_phase_seconds{phase=\"weights\"}"), 1.5);
  EXPECT_EQ(Metric("ashlar_ready{check=\"backends\"}"), 1);
  EXPECT_EQ(Metric("vllm:cache_config_info{model_name=\"toy\",engine=\"0\",block_size=\"16\",num_"
                   "gpu_blocks=\"1000\"}"),
            1);
}

TEST_F(MetricsTest, CountsRequestsTokensAndTimes) {
  OpenReady();
  EXPECT_EQ(Complete({{"prompt", "abc"}}).status, 200);
  EXPECT_EQ(Complete({{"n", 99}}).status, 400);
  const std::string route = "route=\"/v1/completions\"";
  EXPECT_EQ(MetricWhen("ashlar_http_requests_total{" + route + ",code=\"2xx\"}", 1), 1);
  EXPECT_EQ(MetricWhen("ashlar_http_requests_total{" + route + ",code=\"4xx\"}", 1), 1);
  EXPECT_EQ(MetricWhen("ashlar_request_duration_seconds_count{" + route + "}", 1), 1);
  EXPECT_EQ(Metric("ashlar_time_to_first_token_seconds_count"), 1);
  EXPECT_EQ(Metric("ashlar_request_prompt_tokens_sum"), 3);
  EXPECT_EQ(Metric("ashlar_request_generated_tokens_sum"), 2);
  EXPECT_EQ(Metric("ashlar_generated_tokens_total"), 2);
}

TEST_F(MetricsTest, CountsWhatNoHandlerSawAsUnrouted) {
  ApiServer::Options options;
  options.limits.body_bytes = 100;
  OpenReady(std::move(options));
  const std::string route = "ashlar_http_requests_total{route=\"unrouted\",code=";
  EXPECT_EQ(Metric(route + "\"4xx\"}"), 0);
  Get("/nowhere");
  Client().Post("/v1/completions", std::string(200, ' '));
  test::RawClient client = Client();
  client.Say("GET / HTTP/2.0\r\n\r\n");
  EXPECT_EQ(client.Answer().status, 505);
  EXPECT_EQ(MetricWhen(route + "\"4xx\"}", 2), 2);
  EXPECT_EQ(MetricWhen(route + "\"5xx\"}", 1), 1);
  EXPECT_EQ(Metric("ashlar_http_requests_total{route=\"/v1/completions\",code=\"4xx\"}"), 0);
}

TEST_F(MetricsTest, BeforeAModelThePageWorksToo) {
  Open();
  HttpAnswer answer = Get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(Metric("ashlar_ready{check=\"spec\"}"), 0);
}

TEST_F(MetricsTest, ME02_CountersEndInTotalInBothForms) {
  OpenReady();
  std::string page = Get("/metrics").body;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ") || !line.ends_with(" counter")) continue;
    EXPECT_NE(line.find("_total counter"), std::string::npos) << line;
  }
}

TEST_F(MetricsTest, ME06_NoCounterMovesWhileIdle) {
  OpenReady();
  Complete({});
  // A request is counted after its answer went out.
  EXPECT_EQ(MetricWhen("ashlar_http_requests_total{route=\"/v1/completions\",code=\"2xx\"}", 1), 1);
  auto counters = [&] {
    std::vector<std::string> lines;
    for (const std::string& sample : Samples(Get("/metrics").body)) {
      bool connections = sample.starts_with("ashlar_http_connections_");
      if (sample.find("_total") != std::string::npos && !connections) lines.push_back(sample);
    }
    return lines;
  };
  auto first = counters();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(counters(), first);
}

TEST_F(MetricsTest, ME09_ThePathAnswersDirectlyAndSoDoesHead) {
  OpenReady();
  EXPECT_EQ(Get("/metrics").status, 200);
  EXPECT_EQ(Get("/metrics/").status, 404);
  test::RawClient client = Client();
  client.Say("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.Answer(true).status, 200);
}

}  // namespace
}  // namespace ashlar
