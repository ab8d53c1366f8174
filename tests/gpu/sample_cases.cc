// Sampling against the rules of ashlar_draw, followed in double over the sorted row: which ids may
// come, and which uniforms give each. Where a number lies within float32's rounding of a limit,
// both sides of it are right.
#include <algorithm>
#include <numeric>

#include "gpu/cases.h"

namespace ashlar::gpu_test {
namespace {

// Of sums and weights; exp of a float32 argument of up to 30 is within 30 * 2^-24.
constexpr double kRounding = 4e-6;

struct Choice {
  double low = 1, high = 0;  // the share of the mass that gives this id; empty: it never comes
};

// For each id the uniforms that may give it.
std::vector<Choice> Choices(const float* logits, int64_t vocab, const ashlar_draw& draw) {
  std::vector<Choice> choices(static_cast<size_t>(vocab));
  std::vector<int32_t> ids(static_cast<size_t>(vocab));
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (draw.temperature == 0) {
    choices[static_cast<size_t>(ids[0])] = {0, 1};
    return choices;
  }
  const auto weight = [&](int32_t id) {
    return std::exp((double{logits[id]} - double{logits[ids[0]]}) / double{draw.temperature});
  };
  if (draw.top_k > 0 && draw.top_k < vocab) ids.resize(static_cast<size_t>(draw.top_k));
  double total = 0, before = 0, kept = 0;
  for (int32_t id : ids) total += weight(id);
  const double enough = double{draw.top_p} * total;
  std::vector<std::pair<int32_t, bool>> in;  // id, and whether rounding could leave it out
  for (int32_t id : ids) {
    const double w = weight(id);
    const bool first = in.empty();
    if (!first && draw.top_p < 1 && before >= enough + kRounding * total) break;
    if (!first && w < double{draw.min_p} * (1 - kRounding)) break;
    const bool unsure = !first && ((draw.top_p < 1 && before >= enough - kRounding * total) ||
                                   w < double{draw.min_p} * (1 + kRounding));
    in.emplace_back(id, unsure);
    before += w;
    if (!unsure) kept += w;
  }
  std::sort(in.begin(), in.end());
  // Those that may be left out move what comes after them by their weight at most.
  const double spare = before - kept;
  double sum = 0;
  for (const auto& [id, unsure] : in) {
    const double w = weight(id);
    choices[static_cast<size_t>(id)] = {(sum - spare) / before - kRounding,
                                        (sum + w + spare) / kept + kRounding};
    sum += w;
  }
  return choices;
}

std::vector<int32_t> Sample(const Side& side, const std::vector<float>& logits, int64_t vocab,
                            int64_t pitch, const std::vector<ashlar_draw>& draws) {
  const int64_t n = static_cast<int64_t>(draws.size());
  std::vector<float> rows(static_cast<size_t>(n * pitch), NAN);
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(logits.begin() + i * vocab, vocab, rows.begin() + i * pitch);
  }
  rows.resize(static_cast<size_t>((n - 1) * pitch + vocab));
  const Array<float> in(side, rows, false);
  const Array<ashlar_draw> how(side, draws, false);
  const Array<int32_t> ids(side, std::vector<int32_t>(static_cast<size_t>(n), -7));
  ashlar_tensor tensor = Dense(in.data(), ASHLAR_F32, {n, vocab});
  tensor.stride[0] = pitch * 4;
  side.Must(side.table().sample(side.device(), side.stream(), tensor, how.data(), ids.data()));
  return ids.Read();
}

std::vector<float> Row(Random& random, int64_t vocab) {
  std::vector<float> row = random.Normals(vocab, random.Pick<double>({0.3, 1, 3, 10}));
  const auto at = [&] { return static_cast<size_t>(random.Int(0, vocab - 1)); };
  if (random.Chance(0.2)) {  // many equals
    for (float& value : row) value = std::round(value);
  }
  if (random.Chance(0.1)) std::fill(row.begin(), row.end(), row[0]);
  if (random.Chance(0.2)) row[at()] += random.Pick<float>({5, 20, 1e4f, 1e30f});
  if (random.Chance(0.1)) std::sort(row.begin(), row.end(), std::greater<>());
  if (random.Chance(0.1)) row[at()] = random.Pick<float>({NAN, INFINITY, -INFINITY});
  return row;
}

ashlar_draw Draw(Random& random, int64_t vocab) {
  ashlar_draw draw{};
  draw.temperature = random.Pick<float>({0, 0.3f, 1, 1, 2});
  if (random.Chance(0.4)) draw.top_k = random.Pick<int32_t>({1, 3, 50, 1000, 5000});
  if (random.Chance(0.05)) draw.top_k = static_cast<int32_t>(random.Int(1, vocab));
  draw.top_p = random.Chance(0.5) ? random.Pick<float>({0, 0.1f, 0.5f, 0.9f, 0.999f}) : 1;
  if (random.Chance(0.3)) draw.min_p = random.Pick<float>({0.001f, 0.1f, 0.5f, 1});
  draw.uniform = random.Chance(0.1)   ? 0
                 : random.Chance(0.1) ? 1 - 0x1p-53
                                      : std::uniform_real_distribution<double>()(random.engine());
  return draw;
}

std::string Words(const ashlar_draw& d) {
  char text[160];
  std::snprintf(text, sizeof text, "temperature %g top_k %d top_p %g min_p %g uniform %.17g",
                double{d.temperature}, d.top_k, double{d.top_p}, double{d.min_p}, d.uniform);
  return text;
}

void CheckId(const Context& c, const float* logits, int64_t vocab, const ashlar_draw& draw,
             int32_t id) {
  const std::string what =
      "vocab " + std::to_string(vocab) + " " + Words(draw) + ": id " + std::to_string(id);
  const bool finite =
      std::all_of(logits, logits + vocab, [](float value) { return std::isfinite(value); });
  if (!finite || id < 0 || id >= vocab) {
    return c.report.Expect(!finite && id == -1, c.op, what);
  }
  const Choice choice = Choices(logits, vocab, draw)[static_cast<size_t>(id)];
  c.report.Expect(
      choice.low <= draw.uniform && draw.uniform <= choice.high, c.op,
      what + " comes from " + std::to_string(choice.low) + " to " + std::to_string(choice.high));
}

// How often each id comes, by the statistic that has the chi-square distribution.
void Frequencies(const Context& c) {
  constexpr int kVocab = 6, kDraws = 240;
  const std::vector<float> row = c.random.Normals(kVocab);
  std::vector<float> logits;
  std::vector<ashlar_draw> draws;
  for (int i = 0; i < kDraws; ++i) {
    logits.insert(logits.end(), row.begin(), row.end());
    draws.push_back(Draw(c.random, kVocab));
    draws.back().temperature = 1.5f, draws.back().top_k = 0;
    draws.back().top_p = 1, draws.back().min_p = 0;
    draws.back().uniform = std::uniform_real_distribution<double>()(c.random.engine());
  }
  std::vector<double> expected;
  for (float logit : row) expected.push_back(std::exp(double{logit} / 1.5));
  const double total = std::accumulate(expected.begin(), expected.end(), 0.0);
  std::vector<int> seen(kVocab);
  for (int32_t id : Sample(c.plugin, logits, kVocab, kVocab, draws)) {
    if (id >= 0 && id < kVocab) ++seen[static_cast<size_t>(id)];
  }
  double statistic = 0;
  for (size_t i = 0; i < kVocab; ++i) {
    const double want = kDraws * expected[i] / total;
    statistic += (seen[i] - want) * (seen[i] - want) / want;
  }
  // With 5 degrees of freedom it is passed once in 10^9.
  c.report.Expect(statistic < 50, "sample frequencies", std::to_string(statistic));
}

}  // namespace

void SampleCase(const Context& c) {
  const int64_t vocab = c.random.Chance(0.3)   ? c.random.Int(1, 300)
                        : c.random.Chance(0.2) ? 8192 * c.random.Int(1, 2) + c.random.Int(-1, 1)
                        : c.random.Chance(0.2) ? 151936
                                               : c.random.Int(5000, 40000);
  const int64_t n = c.random.Int(1, 6), pitch = vocab + c.random.Int(0, 7);
  std::vector<float> logits;
  std::vector<ashlar_draw> draws;
  for (int64_t i = 0; i < n; ++i) {
    const std::vector<float> row = Row(c.random, vocab);
    logits.insert(logits.end(), row.begin(), row.end());
    draws.push_back(Draw(c.random, vocab));
  }
  const std::vector<int32_t> ids = Sample(c.plugin, logits, vocab, pitch, draws);
  const std::vector<int32_t> reference = Sample(c.reference, logits, vocab, vocab, draws);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    CheckId(c, logits.data() + i * vocab, vocab, draws[at], ids[at]);
    CheckId(c, logits.data() + i * vocab, vocab, draws[at], reference[at]);
  }
  // A row's id is its own: alone, and wherever it lies.
  const int64_t one = c.random.Int(0, n - 1);
  const std::vector<float> row(logits.begin() + one * vocab, logits.begin() + (one + 1) * vocab);
  c.report.Expect(Sample(c.plugin, row, vocab, vocab, {draws[size_t(one)]})[0] == ids[size_t(one)],
                  "sample alone", "vocab " + std::to_string(vocab));
  Frequencies(c);
}

void ResolveCase(const Context& c) {
  const int64_t n = c.random.Int(1, 300), m = c.random.Int(1, 50);
  std::vector<int32_t> ids, from, want;
  for (int64_t i = 0; i < m; ++i) from.push_back(static_cast<int32_t>(c.random.Int(-1, 1000)));
  for (int64_t i = 0; i < n; ++i) {
    const auto row = c.random.Int(0, m - 1);
    const bool refers = c.random.Chance(0.5);
    ids.push_back(static_cast<int32_t>(refers ? -1 - row : c.random.Int(0, 1000)));
    want.push_back(refers ? from[static_cast<size_t>(row)] : ids.back());
  }
  const Array<int32_t> changed(c.plugin, ids), source(c.plugin, from, false);
  c.plugin.Must(c.plugin.table().resolve_ids(c.plugin.device(), c.plugin.stream(), changed.data(),
                                             source.data(), static_cast<int32_t>(n)));
  c.report.Expect(changed.Read() == want, c.op, std::to_string(n) + " ids");
}

}  // namespace ashlar::gpu_test
