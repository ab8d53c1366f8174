// Shares attention among the threads: (sequence, KV head, run of query rows), and for few of those
// also runs of keys. Keys are always summed in runs of kSplit at absolute positions and the runs
// merged in order, so neither the batch nor the number of threads changes a result.
#include <string.h>

#include <algorithm>
#include <cmath>

#include "common/op_args.h"
#include "common/shapes.h"
#include "ops.h"

namespace ashlar::cpu {
namespace {

constexpr int32_t kSplit = 256;  // keys

struct Problem {
  const ashlar_attention& a;
  int64_t group;   // query heads of one KV head
  int64_t heads;   // of those, in one unit
  int64_t tokens;  // query tokens in one unit
};

// Query tokens [begin, end) (index in the step) of one sequence, with some heads of one KV head.
struct Unit {
  int32_t sequence;
  int32_t head;  // KV head
  int64_t first_query_head, query_heads;
  int64_t begin, end;
};

// What this plugin asks beyond every other: whole registers of heads, and blocks that runs of 16
// keys do not straddle.
std::string CheckMultiples(const ashlar_kv_view& kv) {
  if (kv.block_tokens % 16 != 0)
    return "kv: blocks of " + std::to_string(kv.block_tokens) + " tokens, not a multiple of 16";
  if (kv.head_dim % 16 != 0 || kv.head_dim_v % 16 != 0)
    return "kv: a head size is no multiple of 16";
  return "";
}

// State of up to kAttentionRows query rows, in one thread's scratch.
struct State {
  float* peak;
  float* sum;
  float* out;
};
int64_t StateFloats(const ashlar_attention& a) {
  return kAttentionRows * (2 + int64_t{a.kv.head_dim_v});
}
State StateAt(float* at) { return {at, at + kAttentionRows, at + 2 * kAttentionRows}; }

// total = both softmaxes together. An empty total takes the part as it is.
void Merge(const State& total, const State& part, int rows, int64_t dim) {
  for (int r = 0; r < rows; ++r) {
    if (part.sum[r] == 0.0f) continue;
    float* out = total.out + r * dim;
    const float* added = part.out + r * dim;
    if (total.sum[r] == 0.0f) {
      total.peak[r] = part.peak[r];
      total.sum[r] = part.sum[r];
      memcpy(out, added, dim * sizeof(float));
      continue;
    }
    const float peak = std::max(total.peak[r], part.peak[r]);
    const float old = std::exp(total.peak[r] - peak), fresh = std::exp(part.peak[r] - peak);
    total.peak[r] = peak;
    total.sum[r] = total.sum[r] * old + part.sum[r] * fresh;
    for (int64_t i = 0; i < dim; ++i) out[i] = out[i] * old + added[i] * fresh;
  }
}

// The rows of one unit and the keys that they see.
class UnitRows {
 public:
  UnitRows(const Problem& p, const Unit& unit, float* q) : a_(p.a), unit_(unit), q_(q) {
    for (int64_t token = unit.begin; token < unit.end; ++token) {
      const int64_t position = QueryPosition(a_, unit.sequence, token);
      for (int64_t h = 0; h < unit.query_heads; ++h, ++rows_) {
        first_[rows_] = FirstVisible(a_, position);
        last_[rows_] = position + 1;
      }
    }
    lowest_ = first_[0];
    highest_ = rows_ > 0 ? last_[rows_ - 1] : 0;
  }

  int rows() const { return rows_; }
  int32_t first_split() const { return lowest_ / kSplit; }
  int32_t last_split() const { return (highest_ - 1) / kSplit; }

  void LoadQueries() const {
    const int64_t dim = a_.kv.head_dim;
    float* to = q_;
    for (int64_t token = unit_.begin; token < unit_.end; ++token) {
      const float* from = Row(a_.q, token) + unit_.first_query_head * dim;
      for (int64_t i = 0; i < unit_.query_heads * dim; ++i) *to++ = from[i] * a_.scale;
    }
  }

  void Attend(const KernelTable& kernels, int32_t split, const State& state, float* scratch) const {
    kernels.attend(
        {.q = q_,
         .first = first_,
         .last = last_,
         .rows = rows_,
         .key_begin = std::max(split * kSplit, lowest_ / kAttentionKeys * kAttentionKeys),
         .key_end = std::min((split + 1) * kSplit, highest_),
         .lowest = lowest_,
         .highest = highest_,
         .base = static_cast<const char*>(a_.kv.base) + unit_.head * a_.kv.head_stride,
         .block_stride = a_.kv.block_stride,
         .token_stride = a_.kv.token_stride,
         .block_table = a_.block_table + unit_.sequence * a_.table_stride,
         .block_tokens = a_.kv.block_tokens,
         .dtype = a_.kv.dtype,
         .head_dim = a_.kv.head_dim,
         .head_dim_v = a_.kv.head_dim_v,
         .peak = state.peak,
         .sum = state.sum,
         .out = state.out,
         .scratch = scratch});
  }

  void Store(const State& state) const {
    const int64_t dim = a_.kv.head_dim_v;
    for (int r = 0; r < rows_; ++r) {
      float* to = Row(a_.out, unit_.begin + r / unit_.query_heads) +
                  (unit_.first_query_head + r % unit_.query_heads) * dim;
      const float inverse = 1.0f / state.sum[r];
      for (int64_t i = 0; i < dim; ++i) to[i] = state.out[r * dim + i] * inverse;
    }
  }

 private:
  const ashlar_attention& a_;
  const Unit unit_;
  float* const q_;
  int rows_ = 0;
  int32_t first_[kAttentionRows] = {}, last_[kAttentionRows] = {};
  int32_t lowest_ = 0, highest_ = 0;
};

// One thread's scratch: queries, two states, the kernel's own.
int64_t ThreadFloats(const ashlar_attention& a) {
  return kAttentionRows * int64_t{a.kv.head_dim} + 2 * StateFloats(a) +
         AttentionScratch(a.kv.head_dim, a.kv.head_dim_v);
}

std::vector<Unit> MakeUnits(const Problem& p) {
  std::vector<Unit> units;
  for (int32_t s = 0; s < p.a.sequences; ++s)
    for (int32_t head = 0; head < p.a.kv.kv_heads; ++head)
      for (int64_t h = 0; h < p.group; h += p.heads)
        for (int64_t t = p.a.query_start[s]; t < p.a.query_start[s + 1]; t += p.tokens)
          units.push_back({s, head, head * p.group + h, std::min(p.heads, p.group - h), t,
                           std::min<int64_t>(t + p.tokens, p.a.query_start[s + 1])});
  return units;
}

void RunUnit(const ashlar_device& device, const Problem& p, const Unit& unit, float* memory) {
  const UnitRows rows(p, unit, memory);
  float* next = memory + kAttentionRows * int64_t{p.a.kv.head_dim};
  const State total = StateAt(next), part = StateAt(next + StateFloats(p.a));
  float* scratch = next + 2 * StateFloats(p.a);
  rows.LoadQueries();
  rows.Attend(device.kernels, rows.first_split(), total, scratch);
  for (int32_t split = rows.first_split() + 1; split <= rows.last_split(); ++split) {
    rows.Attend(device.kernels, split, part, scratch);
    Merge(total, part, rows.rows(), p.a.kv.head_dim_v);
  }
  rows.Store(total);
}

// One job a (unit, split), then the merges.
int RunSplit(ashlar_device& device, const Problem& p, const std::vector<Unit>& units) {
  struct Job {
    int64_t unit;
    int32_t split;
  };
  std::vector<Job> jobs;
  std::vector<int64_t> first_job;
  for (size_t i = 0; i < units.size(); ++i) {
    const UnitRows rows(p, units[i], nullptr);
    first_job.push_back(jobs.size());
    for (int32_t s = rows.first_split(); s <= rows.last_split(); ++s)
      jobs.push_back({static_cast<int64_t>(i), s});
  }
  first_job.push_back(jobs.size());
  const int64_t state = StateFloats(p.a);
  float* states = device.splits.Get<float>(jobs.size() * state);
  if (states == nullptr) return Failed("attention: no memory for partial results");
  device.pool.Run(jobs.size(), [&](int64_t job, int thread) {
    float* memory = device.per_thread[thread].Get<float>(ThreadFloats(p.a));
    const UnitRows rows(p, units[jobs[job].unit], memory);
    rows.LoadQueries();
    rows.Attend(device.kernels, jobs[job].split, StateAt(states + job * state),
                memory + kAttentionRows * int64_t{p.a.kv.head_dim} + 2 * state);
  });
  for (size_t i = 0; i < units.size(); ++i) {
    const UnitRows rows(p, units[i], nullptr);
    const State total = StateAt(states + first_job[i] * state);
    for (int64_t job = first_job[i] + 1; job < first_job[i + 1]; ++job)
      Merge(total, StateAt(states + job * state), rows.rows(), p.a.kv.head_dim_v);
    rows.Store(total);
  }
  return ASHLAR_OK;
}

}  // namespace

int Attention(ashlar_device& device, const ashlar_attention& args) {
  std::string wrong = CheckAttention(args);
  if (wrong.empty()) wrong = CheckMultiples(args.kv);
  if (!wrong.empty()) return Failed(wrong);
  const int64_t group = args.q.shape[1] / args.kv.kv_heads;
  const int64_t heads = std::min<int64_t>(group, kAttentionRows);
  const Problem p{args, group, heads, kAttentionRows / heads};
  const std::vector<Unit> units = MakeUnits(p);
  if (units.empty()) return ASHLAR_OK;
  for (Scratch& scratch : device.per_thread)
    if (scratch.Get<float>(ThreadFloats(args)) == nullptr) return Failed("attention: no memory");
  const int threads = device.pool.threads();
  const bool few = static_cast<int64_t>(units.size()) < 4 * threads;
  if (threads > 1 && few && args.max_context > kSplit) return RunSplit(device, p, units);
  device.pool.Run(units.size(), [&](int64_t i, int thread) {
    RunUnit(device, p, units[i], device.per_thread[thread].Get<float>(ThreadFloats(args)));
  });
  return ASHLAR_OK;
}

}  // namespace ashlar::cpu
