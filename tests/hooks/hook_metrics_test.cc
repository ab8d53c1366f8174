#include "operator-hooks/hook_metrics.h"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "base/mapped_file.h"
#include "operator-hooks/hook_server.h"
#include "support/hooks_cluster.h"
#include "support/http_client.h"

namespace ashlar::hooks {
namespace {

using testing::HasSubstr;

std::vector<std::string> Samples(const std::string& page) {
  std::vector<std::string> samples;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') samples.push_back(line);
  }
  return samples;
}

TEST(HookMetrics, EverySeriesIsThereFromTheStart) {
  HookMetrics metrics;
  const size_t before = Samples(metrics.Text({})).size();
  metrics.CountRequest(Hook::kFinalize, 429, 0.002);
  metrics.CountVerdict(true);
  metrics.CountPoll(PollResult::kUnreadable);
  metrics.SetPolled(1'800'000'000);
  SnapshotStore::Counts models{};
  models[0][1] = 3;
  const std::string page = metrics.Text(models);
  EXPECT_EQ(Samples(page).size(), before);
  EXPECT_LE(before, 200u);
  for (const char* sample :
       {"ashlar_hook_requests_total{code=\"429\",hook=\"finalize\"} 1",
        "ashlar_hook_requests_total{code=\"200\",hook=\"sync\"} 0",
        "ashlar_hook_request_duration_seconds_count{hook=\"finalize\"} 1",
        "ashlar_hook_request_duration_seconds_bucket{hook=\"finalize\",le=\"0.0025\"} 1",
        "ashlar_hook_request_duration_seconds_bucket{hook=\"finalize\",le=\"0.001\"} 0",
        "ashlar_hook_plan_cache_lookups_total{result=\"hit\"} 1",
        "ashlar_hook_pod_polls_total{result=\"unreadable\"} 1",
        "ashlar_hook_last_poll_timestamp_seconds 1800000000",
        "ashlar_hook_models{condition=\"Accepted\",status=\"False\"} 3"}) {
    EXPECT_THAT(page, HasSubstr(sample));
  }
}

TEST(HookMetrics, AreRepeatedInTheDocs) {
  std::string docs =
      ReadTextFile(std::string(ASHLAR_SOURCE_DIR) + "/docs/kubernetes.md", 1 << 20).value();
  std::set<std::string> names;
  std::istringstream lines(HookMetrics().Text({}));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# TYPE ")) continue;
    std::string name = line.substr(7, line.find(' ', 7) - 7);
    EXPECT_THAT(docs, HasSubstr("`" + name));
    EXPECT_EQ(line.ends_with(" counter"), name.ends_with("_total")) << line;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 7u);
}

TEST(HookMetrics, RequestsOverHttpAreCounted) {
  Settings settings;
  SnapshotStore snapshots;
  HookMetrics metrics;
  HookService service(settings, snapshots, metrics, [] { return int64_t{1'800'000'000}; });
  HttpServer::Options options;
  options.host = "127.0.0.1";
  options.port = 0;
  options.error_body = HookError;
  auto server = HttpServer::Start(options, HookRoutes(service, metrics)).value();
  const Json spec = {{"model", {{"source", {{"builtin", "demo"}}}}}};
  HooksCluster cluster(spec);
  std::string body = cluster.Request().dump();
  test::RawClient client(server->port());
  for (const std::string& sent : {body, body, std::string("{}")}) client.Post("/sync", sent);
  const std::string page = client.Get("/metrics").body;
  EXPECT_THAT(page, HasSubstr("ashlar_hook_requests_total{code=\"200\",hook=\"sync\"} 2"));
  EXPECT_THAT(page, HasSubstr("ashlar_hook_requests_total{code=\"400\",hook=\"sync\"} 1"));
  EXPECT_THAT(page, HasSubstr("ashlar_hook_request_duration_seconds_count{hook=\"sync\"} 3"));
  EXPECT_THAT(page, HasSubstr("ashlar_hook_plan_cache_lookups_total{result=\"hit\"} 1"));
  EXPECT_THAT(page, HasSubstr("ashlar_hook_models{condition=\"Accepted\",status=\"True\"} 1"));
}

}  // namespace
}  // namespace ashlar::hooks
