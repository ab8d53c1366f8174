// Stands in for the vendor's attention on the host executor, so that what is put around it is
// checked there too: which sequences, their tables, lengths and begins. As versions of the library
// do, it multiplies values past a sequence's last, up to a multiple of 128 tokens, by zero. It has
// no plan for blocks of 48 tokens.
#include <algorithm>
#include <cmath>
#include <vector>

#include "cuda/cudnn.h"
#include "gpu/number.h"

namespace ashlar::gpu_kernels {
namespace {

class HostSdpa final : public Sdpa {
 public:
  bool Knows(const SdpaShape&) const override { return true; }
  int64_t WorkspaceBytes(const SdpaShape& s) override { return s.block_tokens == 48 ? -1 : 64; }

  std::string Run(gpu::Stream, const SdpaShape& s, const SdpaCall& c) override {
    for (int64_t slot = 0; slot < s.sequences; ++slot) {
      for (int64_t token = 0; token < c.tokens[slot]; ++token) {
        for (int64_t head = 0; head < s.q_heads; ++head) Attend(s, c, slot, token, head);
      }
    }
    return "";
  }

 private:
  static void Attend(const SdpaShape& s, const SdpaCall& c, int64_t slot, int64_t token,
                     int64_t head) {
    const int64_t seen = c.contexts[slot] - c.tokens[slot] + token + 1;
    const int64_t padded = std::min((c.contexts[slot] + 127) / 128 * 128,
                                    static_cast<int>(s.table_blocks * s.block_tokens));
    const int64_t kv_head = head / (s.q_heads / s.kv_heads);
    const auto entry = [&](int64_t key) {
      const int64_t block = c.tables[slot * s.table_blocks + key / s.block_tokens];
      return block * s.cache_block + kv_head * s.cache_head + key % s.block_tokens * s.cache_token;
    };
    const int64_t q = c.q_begins[slot] + token * s.q_token + head * s.head_dim;
    std::vector<double> weights(static_cast<size_t>(padded));
    double top = -INFINITY, sum = 0;
    for (int64_t key = 0; key < seen; ++key) {
      double& score = weights[static_cast<size_t>(key)];
      for (int64_t i = 0; i < s.head_dim; ++i) {
        score += double{LoadAs(s.type, c.q, q + i)} * LoadAs(s.type, c.k, entry(key) + i);
      }
      score *= c.scale;
      top = std::max(top, score);
    }
    for (int64_t key = 0; key < seen; ++key) {
      double& weight = weights[static_cast<size_t>(key)];
      sum += weight = std::exp(weight - top);
    }
    for (int64_t i = 0; i < s.head_dim; ++i) {
      double value = 0;
      for (int64_t key = 0; key < padded; ++key) {
        value += weights[static_cast<size_t>(key)] * LoadAs(s.type, c.v, entry(key) + i);
      }
      const int64_t out = c.out_begins[slot] + token * s.out_token + head * s.head_dim;
      StoreAs(s.type, c.out, out + i, static_cast<float>(value / sum));
    }
  }
};

}  // namespace

std::unique_ptr<Sdpa> OpenSdpa() { return std::make_unique<HostSdpa>(); }

}  // namespace ashlar::gpu_kernels
