// The engine without HTTP, on whatever the spec names, once it is warm: one JSON line a scenario.
//   bench_engine SPEC SCENARIO...
//   decode:BATCH:PROMPT:TOKENS   mean time of a step while all of the batch decode; kv.prefixCache
//                                keeps their contexts alike
//   prefill:TOKENS               time from submission to the first token, median of 5
//   list:FILE                    all requests at once; a line of FILE is "prompt tokens"
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <thread>

#include "bring_up.h"
#include "spec/spec.h"

namespace ashlar {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

class Bench {
 public:
  explicit Bench(Engine& engine, int64_t vocab) : engine_(engine), vocab_(vocab) {}

  // Random ids below 10,000.
  std::vector<int32_t> Prompt(int tokens) {
    const int64_t ids = std::min<int64_t>(vocab_, 10'000);
    std::vector<int32_t> prompt;
    for (int i = 0; i < tokens; ++i) {
      prompt.push_back(static_cast<int32_t>(random_() % static_cast<uint64_t>(ids)));
    }
    return prompt;
  }

  // Greedy, with no end before `tokens`.
  uint64_t Submit(int choice, std::vector<int32_t> prompt, int tokens) {
    Request request;
    request.choice = choice;
    request.prompt = std::move(prompt);
    request.max_tokens = tokens;
    request.ignore_eos = true;
    request.sampling.temperature = 0;
    auto submitted = engine_.Submit(std::move(request), events_);
    if (const auto* id = std::get_if<uint64_t>(&submitted)) return *id;
    throw std::runtime_error("a request was refused: raise limits.queuedTokens and queuedRequests");
  }

  Event Next() {
    std::optional<Event> event = events_->Pop(std::chrono::seconds(300));
    if (!event) throw std::runtime_error("no event in 300 s");
    if (event->finish == FinishReason::kError) throw std::runtime_error(event->error);
    return std::move(*event);
  }

  // From the first tokens of the last to begin on; then what still runs is cancelled. All prompts
  // are in the prefix cache by then, so that all begin within a few steps.
  std::string Decode(int batch, int prompt, int tokens) {
    constexpr int kHead = 256;  // tokens that the first may be ahead of the last
    constexpr int kFirst = 8;   // steps in which graphs are made
    std::vector<std::vector<int32_t>> prompts;
    for (int i = 0; i < batch; ++i) {
      prompts.push_back(Prompt(prompt));
      Submit(i, prompts.back(), 1);
    }
    for (int ended = 0; ended < batch; ended += Next().finish ? 1 : 0) {
    }
    std::vector<uint64_t> ids;
    for (int i = 0; i < batch; ++i) {
      ids.push_back(Submit(i, std::move(prompts[static_cast<size_t>(i)]), tokens + kHead));
    }
    std::vector<bool> begun(static_cast<size_t>(batch));
    int waiting = batch;
    while (waiting > 0) {
      Event event = Next();
      if (event.finish) throw std::runtime_error("one ended before the last began");
      if (!event.ids.empty() && !begun[static_cast<size_t>(event.choice)]) {
        begun[static_cast<size_t>(event.choice)] = true;
        --waiting;
      }
    }
    const auto run = [&](int64_t count) {
      const int64_t steps = engine_.stats().steps;
      int64_t ran = 0;
      while (ran < count) {
        if (Next().finish) throw std::runtime_error("one ended while it was timed");
        ran = engine_.stats().steps - steps;
      }
      return ran;
    };
    run(kFirst);
    const Clock::time_point first = Clock::now();
    const int64_t ran = run(tokens);
    const double step = Seconds(first, Clock::now()) / static_cast<double>(ran);
    for (uint64_t id : ids) engine_.Cancel(id);
    for (int ended = 0; ended < batch; ended += Next().finish ? 1 : 0) {
    }
    return fmt::format(
        R"({{"row": "decode", "batch": {}, "prompt": {}, "tokens": {}, "step_ms": {:.4f}, "tok_s": {:.1f}}})",
        batch, prompt, tokens, step * 1e3, batch / step);
  }

  std::string Prefill(int tokens) {
    std::vector<double> times;
    for (int i = 0; i < 6; ++i) {
      const Clock::time_point begin = Clock::now();
      Submit(0, Prompt(tokens), 1);
      while (!Next().finish) {
      }
      if (i > 0) times.push_back(Seconds(begin, Clock::now()));
    }
    std::ranges::sort(times);
    return fmt::format(
        R"({{"row": "prefill", "tokens": {}, "ttft_ms": {:.3f}, "min": {:.3f}, "max": {:.3f}}})",
        tokens, times[times.size() / 2] * 1e3, times.front() * 1e3, times.back() * 1e3);
  }

  std::string List(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::pair<int, int>> list;
    for (int prompt, tokens; file >> prompt >> tokens;) list.emplace_back(prompt, tokens);
    if (list.empty()) throw std::runtime_error(path + " has no line of two numbers");
    const Clock::time_point begin = Clock::now();
    int64_t generated = 0;
    for (size_t i = 0; i < list.size(); ++i) {
      Submit(static_cast<int>(i), Prompt(list[i].first), list[i].second);
    }
    for (size_t ended = 0; ended < list.size();) {
      Event event = Next();
      generated += std::ssize(event.ids);
      if (event.finish) ++ended;
    }
    const double seconds = Seconds(begin, Clock::now());
    return fmt::format(
        R"({{"row": "list", "requests": {}, "tokens": {}, "seconds": {:.3f}, "tok_s": {:.1f}}})",
        list.size(), generated, seconds, static_cast<double>(generated) / seconds);
  }

  std::string Run(const std::string& scenario) {
    std::istringstream words(scenario);
    std::string kind, word;
    std::getline(words, kind, ':');
    if (kind == "list") return List(scenario.substr(5));
    std::vector<int> numbers;
    while (std::getline(words, word, ':')) numbers.push_back(std::stoi(word));
    if (kind == "decode" && numbers.size() == 3) return Decode(numbers[0], numbers[1], numbers[2]);
    if (kind == "prefill" && numbers.size() == 1) return Prefill(numbers[0]);
    throw std::runtime_error(scenario +
                             ": decode:BATCH:PROMPT:TOKENS, prefill:TOKENS or list:FILE");
  }

 private:
  Engine& engine_;
  int64_t vocab_;
  std::mt19937_64 random_{0};
  std::shared_ptr<EventQueue> events_ = std::make_shared<EventQueue>();
};

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "bench_engine SPEC SCENARIO...\n";
    return 64;
  }
  Running run;
  Result<Spec> spec = LoadSpecFile(argv[1]);
  if (!spec) {
    std::cerr << Text(spec.problems()) << "\n";
    return 1;
  }
  run.spec = std::move(*spec);
  Readiness readiness;
  ApiServer::Options options;
  options.host = "127.0.0.1";
  options.port = run.spec.server.port;
  Result<std::unique_ptr<ApiServer>> api = ApiServer::Start(std::move(options), readiness);
  if (!api) {
    std::cerr << Text(api.problems()) << "\n";
    return 1;
  }
  const Clock::time_point begin = Clock::now();
  if (auto rejection = BringUp(run, "", **api, readiness)) {
    std::cerr << Text(rejection->problems) << "\n";
    return 1;
  }
  std::cout << fmt::format(R"({{"row": "bring up", "seconds": {:.3f}}})",
                           Seconds(begin, Clock::now()))
            << std::endl;
  for (EngineStats now; !now.warm && now.fault.empty(); now = run.engine->stats()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Bench bench(*run.engine, run.plan.model.vocab);
  for (int i = 2; i < argc; ++i) {
    try {
      std::cout << bench.Run(argv[i]) << std::endl;
    } catch (const std::exception& error) {
      std::cerr << argv[i] << ": " << error.what() << "\n";
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace ashlar

int main(int argc, char** argv) { return ashlar::Main(argc, argv); }
