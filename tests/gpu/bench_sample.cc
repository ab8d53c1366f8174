// Sampling, for 151,936 ids: bytes are those of the logits, read once.
#include "gpu/bench.h"

namespace ashlar::gpu_test {
namespace {

constexpr int64_t kVocab = 151936;

struct Way {
  const char* name;
  bool flat;  // normal logits, as of random weights; else with a tail of some far better ones
  ashlar_draw draw;
};
constexpr Way kWays[] = {{"greedy", false, {0, 0, 1, 0, 0}},
                         {"temperature 1", false, {1, 0, 1, 0, 0}},
                         {"top-k 50", false, {1, 50, 1, 0, 0}},
                         {"top-p 0.9", false, {1, 0, 0.9f, 0, 0}},
                         {"min-p 0.1", false, {1, 0, 1, 0.1f, 0}},
                         {"top-k 50, top-p 0.9, min-p 0.1", false, {0.8f, 50, 0.9f, 0.1f, 0}},
                         {"top-k 50, flat", true, {1, 50, 1, 0, 0}},
                         {"min-p 0.1, flat", true, {1, 0, 1, 0.1f, 0}},
                         {"top-p 0.9, flat", true, {1, 0, 0.9f, 0, 0}}};

std::vector<float> Logits(bool flat) {
  Random random(2);
  std::vector<float> values = random.Normals(1 << 20, flat ? 1 : 2);
  if (flat) return values;
  std::exponential_distribution<float> better(0.25f);
  for (float& value : values) {
    if (random.Chance(0.001)) value += better(random.engine());
  }
  return values;
}

}  // namespace

void SampleBench(const Side& side) {
  for (const int64_t n : {1, 8, 64, 256}) {
    const int64_t bytes = n * kVocab * 4;
    const int copies = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 30) / bytes, 4, 256));
    const Memory logits(side, copies * bytes);
    const Array<int32_t> ids(side, std::vector<int32_t>(static_cast<size_t>(n)));
    for (const bool flat : {false, true}) {
      logits.Fill(Logits(flat), copies * bytes);
      for (const Way& way : kWays) {
        if (way.flat != flat) continue;
        std::vector<ashlar_draw> draws(static_cast<size_t>(n), way.draw);
        for (size_t i = 0; i < draws.size(); ++i) {
          draws[i].uniform = (static_cast<double>(i) + 0.5) / static_cast<double>(n);
        }
        const Array<ashlar_draw> how(side, draws);
        const Time time = Measure(side, copies, [&](int i) {
          side.Must(side.table().sample(
              side.device(), side.stream(),
              Dense(logits.as<char>() + i % copies * bytes, ASHLAR_F32, {n, kVocab}), how.data(),
              ids.data()));
        });
        char what[80];
        std::snprintf(what, sizeof what, "sample B %d %s", static_cast<int>(n), way.name);
        Print(what, time, double(bytes), 0);
      }
    }
  }
}

}  // namespace ashlar::gpu_test
