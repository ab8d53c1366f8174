// Steps that run as graphs, on the reference with graphs made of its ops.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "support/engine_client.h"
#include "support/toy_model_engine.h"
#include "support/toy_model_weights.h"

namespace ashlar {
namespace {

std::string Path() { return std::string(ASHLAR_BUILD_DIR) + "/tests/engine/libashlar_graphs.so"; }

std::unique_ptr<Device> Open() {
  auto plugin = Plugin::Load(Path());
  return std::move(*Device::Open(**plugin, {0, 1, true}));
}

int Launches() {
  void* library = dlopen(Path().c_str(), RTLD_NOW | RTLD_LOCAL);
  return *static_cast<int*>(dlsym(library, "ashlar_test_launches"));
}

class Graphs : public testing::TestWithParam<toy::Architecture> {};

TEST_P(Graphs, GiveTheAnswersOfSingleOps) {
  std::vector<Request> requests = RandomRequests(7, 24, toy::kTinyVocab, 60, 12);
  for (size_t i = 0; i < requests.size(); i += 2) {  // half of them are sampled by the device
    requests[i].sampling = {};
    requests[i].min_tokens = 0;
  }
  toy::TinyEngine host(GetParam(), {16, 0, 200}, toy::SmallOptions());
  toy::TinyEngine graphs(GetParam(), {16, 0, 200}, toy::SmallOptions(), Open());
  const int before = Launches();
  for (const Request& request : requests)
    EXPECT_EQ(Ask(*graphs, request).ids, Ask(*host, request).ids);
  std::vector<Pending> from_graphs, from_host;
  for (const Request& request : requests) from_graphs.push_back(Submit(*graphs, request));
  for (const Request& request : requests) from_host.push_back(Submit(*host, request));
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(Wait(*from_graphs[i].events).ids, Wait(*from_host[i].events).ids);
  }
  EXPECT_GT(Launches() - before, 50);
}

INSTANTIATE_TEST_SUITE_P(Models, Graphs,
                         testing::Values(toy::Architecture::kLlama, toy::Architecture::kGemma));

// The first of a shape runs op by op, the second is kept.
TEST(Graph, ShortPromptsRunAsOneToo) {
  toy::TinyEngine engine(toy::Architecture::kLlama, {16, 0, 200}, toy::SmallOptions(), Open());
  Request request;
  request.max_tokens = 1;
  const int before = Launches();
  for (int i = 0; i < 5; ++i) {
    request.prompt.assign(static_cast<size_t>(20 + i), i);
    EXPECT_EQ(Ask(*engine, request).ids.size(), 1u);
  }
  EXPECT_EQ(Launches() - before, 4);
}

}  // namespace
}  // namespace ashlar
