// Causal attention over the paged cache, one (token, head) at a time: scores of all visible keys,
// softmax, sum of values, in double throughout. Bound by flops.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ashlar_rows.h"
#include "common/op_args.h"
#include "common/shapes.h"
#include "device.h"
#include "kv.h"
#include "ops.h"

namespace ashlar::reference {
namespace {

// K values, then V values of one entry of the cache.
const void* Entry(const ashlar_attention& a, int32_t sequence, int64_t head, int64_t key) {
  const int32_t block = a.block_table[sequence * a.table_stride + key / a.kv.block_tokens];
  return KvEntry(a.kv, block, head, key % a.kv.block_tokens);
}

// Room that one thread reuses.
struct Scratch {
  std::vector<float> key;
  std::vector<double> weights;  // [visible keys]
  std::vector<double> sum;      // [head_dim_v]
};

void ReadFloats(ashlar_dtype dtype, const void* entry, int64_t first, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = LoadFloat(dtype, entry, first + i);
}

void AttendHead(const ashlar_attention& a, int32_t sequence, int64_t token, int64_t head,
                Scratch& scratch) {
  const int64_t dim = a.kv.head_dim, dim_v = a.kv.head_dim_v;
  const int64_t kv_head = head / (a.q.shape[1] / a.kv.kv_heads);
  const int64_t last = QueryPosition(a, sequence, token), first = FirstVisible(a, last);
  const float* query = Row(a.q, token) + head * dim;
  const auto count = static_cast<size_t>(last - first + 1);
  scratch.key.resize(static_cast<size_t>(std::max(dim, dim_v)));
  scratch.weights.resize(count);
  scratch.sum.assign(static_cast<size_t>(dim_v), 0.0);

  double top = -INFINITY;
  for (size_t i = 0; i < count; ++i) {
    const void* entry = Entry(a, sequence, kv_head, first + static_cast<int64_t>(i));
    ReadFloats(a.kv.dtype, entry, 0, dim, scratch.key.data());
    scratch.weights[i] = Dot(query, scratch.key.data(), dim) * static_cast<double>(a.scale);
    top = std::max(top, scratch.weights[i]);
  }
  double total = 0;
  for (size_t i = 0; i < count; ++i) {
    const double weight = std::exp(scratch.weights[i] - top);
    total += weight;
    const void* entry = Entry(a, sequence, kv_head, first + static_cast<int64_t>(i));
    ReadFloats(a.kv.dtype, entry, dim, dim_v, scratch.key.data());
    for (size_t d = 0; d < scratch.sum.size(); ++d) {
      scratch.sum[d] += weight * static_cast<double>(scratch.key[d]);
    }
  }
  float* out = Row(a.out, token) + head * dim_v;
  for (size_t d = 0; d < scratch.sum.size(); ++d) {
    out[d] = static_cast<float>(scratch.sum[d] / total);
  }
}

}  // namespace

int Attention(ashlar_device* device, ashlar_stream*, int32_t row, const ashlar_attention* args) {
  if (row < 0 || row >= ashlar_reference_row_count) return Failed("attention: no such row");
  const std::string problem = CheckAttention(*args, kKvDtypes);
  if (!problem.empty()) return Failed(problem);

  const int64_t heads = args->q.shape[1];
  const int32_t* starts = args->query_start;
  device->pool.Split(starts[args->sequences] * heads, [&](int64_t begin, int64_t end) {
    Scratch scratch;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t token = i / heads;
      const auto after = std::upper_bound(starts, starts + args->sequences + 1, token);
      AttendHead(*args, static_cast<int32_t>(after - starts) - 1, token, i % heads, scratch);
    }
  });
  ++device->launches[static_cast<size_t>(row)];
  return ASHLAR_OK;
}

}  // namespace ashlar::reference
