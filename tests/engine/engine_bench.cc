// Host costs of the engine, with a toy model that costs next to nothing:
//   engine_bench step [vocab]     CPU microseconds of one decode step, and of those what the
//                                 reference plugin's sampling takes, which a GPU does by itself
//   engine_bench sampler [vocab]  CPU microseconds of one sampled token
//   engine_bench soak [requests]  resident memory while unique short prompts go by
#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "support/toy_model_engine.h"
#include "support/toy_model_idle.h"

namespace ashlar {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of this thread: other load on the machine does not count.
double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Request MakeRequest(std::vector<int32_t> prompt, int max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  return request;
}

// CPU seconds that the reference plugin samples so many tokens in.
double SamplingSeconds(const Device& device, int64_t vocab, int rows) {
  std::vector<float> logits(static_cast<size_t>(vocab * rows), 0.5f);
  const std::vector<ashlar_draw> draws(static_cast<size_t>(rows), {0, 0, 1, 0, 0});
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  const Tensor tensor = Tensor::Of(logits.data(), DType::kF32, {rows, vocab});
  const int times = 500;
  const double begin = CpuSeconds();
  for (int i = 0; i < times; ++i) (void)device.Sample(tensor, draws.data(), ids.data());
  return (CpuSeconds() - begin) / times;
}

void Step(int64_t vocab) {
  for (int batch : {1, 8, 64, 256}) {
    toy::Shape shape;
    shape.vocab = vocab;
    shape.context_length = 4096;
    shape.groups = {{KvKind::kFull, 0, 2, 16, 0, 256 * 256},
                    {KvKind::kSliding, 512, 2, 16, 0, 16384}};
    Plan plan = toy::MakePlan(shape);
    auto device = toy::OpenReference();
    Engine::Options options;
    options.max_sequences = 256;
    options.batch_tokens = 2048;
    auto worker =
        toy::MakeWorker(plan, *device, options, std::make_unique<toy::IdleForward>(vocab, 256));
    auto events = std::make_shared<EventQueue>();
    for (int i = 0; i < batch; ++i) {
      std::vector<int32_t> prompt(1000, i % static_cast<int>(vocab));
      worker->Accept(toy::MakeSequence(static_cast<uint64_t>(i + 1),
                                       MakeRequest(std::move(prompt), 100'000), events));
    }
    EngineStats stats;
    double in_step = 0;  // without handing out what came of it
    auto step = [&] {
      const double begin = CpuSeconds();
      (void)worker->Step();
      in_step += CpuSeconds() - begin;
      worker->FillStats(stats);
      worker->Flush();
      (void)events->Pop(std::chrono::milliseconds(0));
    };
    for (int i = 0; i < 200; ++i) step();
    const int steps = 2000;
    in_step = 0;
    double start = CpuSeconds();
    for (int i = 0; i < steps; ++i) step();
    const double whole = CpuSeconds() - start;
    fmt::print(
        "batch {:3}, vocab {}: {:.1f} us a step, {:.1f} with events and stats; sampling {:.1f}\n",
        batch, vocab, in_step / steps * 1e6, whole / steps * 1e6,
        SamplingSeconds(*device, vocab, batch) * 1e6);
    if (stats.steps < steps) fmt::print("  only {} steps ran\n", stats.steps);
    worker->EndAll(FinishReason::kCancelled, "");
  }
}

void TimeSampler(int64_t vocab) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(static_cast<size_t>(vocab));
  for (float& logit : logits) logit = normal(random);
  struct Case {
    const char* name;
    Sampling sampling;
  };
  std::vector<Case> cases(6);
  cases[0] = {"greedy", {}};
  cases[0].sampling.temperature = 0;
  cases[1] = {"temperature 1", {}};
  cases[2] = {"top-k 50", {}};
  cases[2].sampling.top_k = 50;
  cases[3] = {"top-p 0.95", {}};
  cases[3].sampling.top_p = 0.95f;
  cases[4] = {"min-p 0.05", {}};
  cases[4].sampling.min_p = 0.05f;
  cases[5] = {"greedy, 20 logprobs", {}};
  cases[5].sampling.temperature = 0;
  cases[5].sampling.logprobs = 20;
  Sampler sampler;
  for (const Case& c : cases) {
    const int count = 200;
    double start = CpuSeconds();
    int64_t sum = 0;
    for (uint64_t i = 0; i < count; ++i) {
      SampleInput input;
      input.logits = logits;
      input.position = i;
      sum += sampler.Sample(input, c.sampling).id;
    }
    fmt::print("vocab {}, {}: {:.0f} us a token ({})\n", vocab, c.name,
               (CpuSeconds() - start) / count * 1e6, sum % 10);
  }
  double start = CpuSeconds();
  bool finite = true;
  for (int i = 0; i < 200; ++i) finite &= AllFinite(logits);
  fmt::print("vocab {}, finite check: {:.0f} us a row ({})\n", vocab,
             (CpuSeconds() - start) / 200 * 1e6, finite);
}

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void Soak(int64_t requests) {
  toy::ToyForward::Hooks hooks;
  hooks.light = true;
  toy::Shape shape;
  shape.vocab = 4096;
  toy::ToyEngine engine(shape, toy::SmallOptions(), hooks);
  std::mt19937 random(2);
  std::vector<double> at, resident;
  double start = Seconds();
  for (int64_t i = 0; i < requests; ++i) {
    std::vector<int32_t> prompt(20);
    for (int32_t& id : prompt) id = static_cast<int32_t>(random() % 4096);
    auto events = std::make_shared<EventQueue>();
    (void)engine->Submit(MakeRequest(std::move(prompt), 1), events);
    while (!events->Pop(std::chrono::seconds(60))->finish) {
    }
    if (i >= requests / 2 && i % std::max<int64_t>(requests / 200, 1) == 0) {
      at.push_back(static_cast<double>(i));
      resident.push_back(static_cast<double>(ResidentBytes()));
    }
  }
  double n = static_cast<double>(at.size()), sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    sx += at[i], sy += resident[i], sxx += at[i] * at[i], sxy += at[i] * resident[i];
  }
  fmt::print(
      "{} requests, {:.0f}/s: slope of the last half {:.4f} bytes a request, {:.0f} bytes "
      "resident\n",
      requests, static_cast<double>(requests) / (Seconds() - start),
      (n * sxy - sx * sy) / (n * sxx - sx * sx), resident.back());
}

}  // namespace
}  // namespace ashlar

int main(int argc, char** argv) {
  std::string what = argc > 1 ? argv[1] : "step";
  int64_t number = argc > 2 ? std::stoll(argv[2]) : 0;
  if (what == "sampler") {
    ashlar::TimeSampler(number > 0 ? number : 150'000);
  } else if (what == "soak") {
    ashlar::Soak(number > 0 ? number : 1'000'000);
  } else {
    ashlar::Step(number > 0 ? number : 32);
  }
}
