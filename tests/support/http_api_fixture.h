// A whole API on a free port, with a scripted engine behind it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "serve/server.h"
#include "support/http_client.h"
#include "support/http_tiny_text.h"
#include "support/http_toy_engine.h"

namespace ashlar::test {

// Two KV groups, as a sliding-window hybrid has.
inline Plan ToyPlan() {
  Plan plan;
  plan.model_name = "toy";
  plan.model.architecture = "llama";
  plan.model.vocab = 1024;
  plan.platform = "cpu";
  plan.platform_name = "here";
  plan.product = "CPU";
  plan.context_length = 128;
  plan.cache_block_tokens = 16;
  plan.hash_block_tokens = 8;
  plan.scheduler_block_tokens = 32;
  for (int i = 0; i < 2; ++i) {
    KvGroup group;
    group.index = i;
    group.name = i == 0 ? "full_attention" : "sliding_window";
    group.kind = i == 0 ? KvKind::kFull : KvKind::kSliding;
    group.window = i == 0 ? 0 : 32;
    group.layers = {i};
    group.block_tokens = 16;
    group.kernel_block_tokens = 16;
    group.block_steps = {{"requested", 0, "auto"}, {"preferred", 16, "row"}};
    group.page_bytes = 4096;
    group.blocks = 1000;
    AttentionGroup attention;
    attention.layers = {i};
    attention.layer.kind = group.kind;
    attention.layer.head_dim = 32;
    attention.row = i == 0 ? "CPU_PAGED" : "CPU_WINDOW";
    attention.requested = "auto";
    attention.reason = "rank 0 of 2 valid";
    Candidate chosen, refused;
    chosen.row = attention.row;
    chosen.platform = "cpu";
    refused.row = "OTHER";
    refused.platform = "cuda";
    refused.rank = 1;
    refused.refusals = {RefusalReason::kOtherDevice};
    attention.candidates = {chosen, refused};
    group.attention = {attention};
    plan.groups.push_back(group);
  }
  return plan;
}

class ApiFixture : public testing::Test {
 protected:
  // Ids of the words: 256, 257, ...
  static std::vector<std::string> Words() { return {"to", "mor", "row", " ok", "all", " done."}; }
  static constexpr int32_t kTo = 256, kMor = 257, kRow = 258, kOk = 259, kAll = 260, kDone = 261,
                           kEnd = 262;

  void Open(ApiServer::Options options = {}) {
    options.host = "127.0.0.1";
    options.port = 0;
    auto started = ApiServer::Start(std::move(options), readiness_);
    ASSERT_TRUE(started.ok()) << Text(started.problems());
    server_ = std::move(*started);
  }

  void AttachModel() {
    server_->SetModel("toy", std::string(64, 'd'));
    server_->SetPlan(plan_);
    Serving serving{toy_, plan_, *tokenizer_, template_.get(), "toy"};
    server_->Attach(serving);
    for (const CheckInfo& info : kChecks) readiness_.Pass(info.check);
    readiness_.SetPhase(Phase::kReady);
  }

  void OpenReady(ApiServer::Options options = {}) {
    Open(std::move(options));
    AttachModel();
  }

  static ToyScript Script(std::vector<int32_t> ids) {
    ToyScript script;
    script.ids = std::move(ids);
    script.end_id = kEnd;
    return script;
  }

  RawClient Client() { return RawClient(server_->port()); }
  HttpAnswer Get(const std::string& path) { return Client().Get(path); }
  HttpAnswer Post(const std::string& path, const Json& body) {
    return Client().Post(path, body.dump());
  }
  HttpAnswer Complete(Json fields) {
    fields["model"] = "toy";
    if (!fields.contains("prompt")) fields["prompt"] = "hi";
    return Post("/v1/completions", fields);
  }
  HttpAnswer Chat(Json fields) {
    fields["model"] = "toy";
    if (!fields.contains("messages")) {
      fields["messages"] = Json::array({{{"role", "user"}, {"content", "hi"}}});
    }
    return Post("/v1/chat/completions", fields);
  }

  // The JSON of each event of a stream; "[DONE]" as a string.
  static std::vector<Json> Events(const std::string& body) {
    std::vector<Json> events;
    size_t at = 0;
    while (at < body.size()) {
      size_t end = body.find("\n\n", at);
      EXPECT_NE(end, std::string::npos) << "a stream ends in the middle of an event";
      std::string event = body.substr(at, end - at);
      EXPECT_TRUE(event.starts_with("data: ")) << event;
      std::string data = event.substr(6);
      events.push_back(data == "[DONE]" ? Json(data) : Json::parse(data));
      at = end + 2;
    }
    return events;
  }

  // Texts of choice 0, chunk by chunk.
  static std::vector<std::string> Texts(const std::vector<Json>& events) {
    std::vector<std::string> texts;
    for (const Json& event : events) {
      if (!event.is_object() || !event.contains("choices") || event["choices"].empty()) continue;
      const Json& choice = event["choices"][0];
      if (choice.contains("text")) texts.push_back(choice["text"]);
      if (choice.contains("delta") && choice["delta"].contains("content")) {
        texts.push_back(choice["delta"]["content"]);
      }
    }
    return texts;
  }
  static std::string Joined(const std::vector<Json>& events) {
    std::string text;
    for (const std::string& piece : Texts(events)) text += piece;
    return text;
  }
  static std::string FinishReasonOf(const std::vector<Json>& events) {
    for (const Json& event : events) {
      if (!event.is_object() || !event.contains("choices") || event["choices"].empty()) continue;
      const Json& reason = event["choices"][0]["finish_reason"];
      if (!reason.is_null()) return reason;
    }
    return "";
  }

  // The value of a series, written as on the page.
  double Metric(const std::string& series) {
    std::string page = Get("/metrics").body;
    size_t at = page.find("\n" + series + " ");
    EXPECT_NE(at, std::string::npos) << series << " is not on the page";
    if (at == std::string::npos) return -1;
    return std::stod(page.substr(at + series.size() + 2));
  }

  // The same once it is `value`, or after two seconds: a request is counted after its answer left.
  double MetricWhen(const std::string& series, double value) {
    for (int i = 0; i < 200 && Metric(series) != value; ++i) usleep(10'000);
    return Metric(series);
  }

  Readiness readiness_;
  Plan plan_ = ToyPlan();
  std::unique_ptr<Tokenizer> tokenizer_ = TinyTokenizer(Words());
  std::unique_ptr<ChatTemplate> template_ =
      std::move(ChatTemplate::Compile(kTinyTemplate, "", "<|end|>")).value();
  ToyEngine toy_{Script({kAll, kDone})};
  std::unique_ptr<ApiServer> server_;
};

}  // namespace ashlar::test
