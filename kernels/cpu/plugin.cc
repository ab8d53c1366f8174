// The C table: arguments checked and handed on, exceptions turned into one line.
#include <stdio.h>
#include <string.h>

#include <exception>
#include <memory>

#include "ashlar_rows.h"
#include "cpu_count.h"
#include "level.h"
#include "ops.h"

namespace {

using namespace ashlar::cpu;
using ashlar::Failed;
using ashlar::LastError;

// No exception crosses the table.
template <typename Op>
int Guarded(Op op) {
  try {
    return op();
  } catch (const std::exception& e) {
    return Failed(e.what());
  }
}

int Probe(ashlar_probe* out) {
  return Guarded([&]() -> int {
    *out = {};
    out->devices = 1;
    snprintf(out->detail, sizeof out->detail, "%s kernels, %d threads",
             KernelsFor(BestLevel()).name, FindUsableCpus().threads);
    return ASHLAR_OK;
  });
}

int Open(const ashlar_open* args, ashlar_device** out) {
  return Guarded([&]() -> int {
    constexpr int kMostThreads = 1024;
    if (args->index != 0) return Failed("open: there is one CPU device, index 0");
    if (args->threads < 0 || args->threads > kMostThreads)
      return Failed("open: " + std::to_string(args->threads) + " threads; 0 to " +
                    std::to_string(kMostThreads));
    auto device = std::make_unique<ashlar_device>(KernelsFor(BestLevel()), args->threads,
                                                  args->invariant != 0);
    device->launches.resize(ashlar_cpu_row_count);
    *out = device.release();
    return ASHLAR_OK;
  });
}
void Close(ashlar_device* device) { delete device; }

int Alloc(ashlar_device* device, int64_t bytes, void** out) {
  return Guarded([&]() -> int {
    if (bytes < 0) return Failed("alloc: a negative size");
    Pages pages(bytes > 0 ? bytes : 1);
    if (pages.data() == nullptr)
      return Failed("alloc: no memory for " + std::to_string(bytes) + " bytes");
    *out = pages.data();
    device->memory.emplace(pages.data(), std::move(pages));
    return ASHLAR_OK;
  });
}
void Release(ashlar_device* device, void* memory) { device->memory.erase(memory); }

int Copy(ashlar_device*, ashlar_stream*, void* to, const void* from, int64_t bytes) {
  if (bytes < 0) return Failed("copy: a negative size");
  if (bytes > 0) memcpy(to, from, bytes);
  return ASHLAR_OK;
}

int64_t WeightBytes(const ashlar_weight_desc* desc) {
  return CheckDesc(*desc).empty() ? PackedBytes(*desc) : 0;
}

ashlar_plugin MakeTable() {
  ashlar_plugin t{};
  t.abi = ASHLAR_PLUGIN_ABI;
  t.table_bytes = sizeof t;
  t.name = "cpu";
  t.memory = "host";
  t.invariant_ops = 1;
  t.rows = ashlar_cpu_rows;
  t.row_count = ashlar_cpu_row_count;
  t.probe = Probe;
  t.last_error = LastError;
  t.open = Open;
  t.close = Close;
  t.alloc = Alloc;
  t.release = Release;
  t.copy_in = Copy;
  t.copy_out = Copy;
  t.weight_bytes = WeightBytes;
  t.weight_create = [](ashlar_device* d, const ashlar_weight_desc* desc, const void* const* sources,
                       ashlar_weight** out) {
    return Guarded([&]() -> int { return CreateWeight(*d, *desc, sources, out); });
  };
  t.weight_destroy = [](ashlar_device*, ashlar_weight* weight) { delete weight; };
  t.embed = [](ashlar_device* d, ashlar_stream*, ashlar_tensor out, const ashlar_weight* weight,
               const int32_t* ids, float scale) {
    return Guarded([&]() -> int { return Embed(*d, out, *weight, ids, scale); });
  };
  t.gather = [](ashlar_device* d, ashlar_stream*, ashlar_tensor out, ashlar_tensor x,
                const int32_t* rows) {
    return Guarded([&]() -> int { return Gather(*d, out, x, rows); });
  };
  t.rms_norm = [](ashlar_device* d, ashlar_stream*, ashlar_tensor out, ashlar_tensor x,
                  ashlar_tensor weight, float eps) {
    return Guarded([&]() -> int { return RmsNorm(*d, out, x, weight, eps); });
  };
  t.matmul = [](ashlar_device* d, ashlar_stream*, ashlar_tensor out, ashlar_tensor x,
                const ashlar_weight* weight, ashlar_tensor bias) {
    return Guarded([&]() -> int { return Matmul(*d, out, x, *weight, bias); });
  };
  t.qkv_prepare = [](ashlar_device* d, ashlar_stream*, const ashlar_qkv_prepare* args) {
    return Guarded([&]() -> int { return QkvPrepare(*d, *args); });
  };
  t.attention = [](ashlar_device* d, ashlar_stream*, int32_t row, const ashlar_attention* args) {
    return Guarded([&]() -> int {
      if (row < 0 || row >= ashlar_cpu_row_count) return Failed("attention: no such row");
      const int code = Attention(*d, *args);
      if (code == ASHLAR_OK) ++d->launches[row];
      return code;
    });
  };
  t.gated_activation = [](ashlar_device* d, ashlar_stream*, ashlar_tensor out,
                          ashlar_tensor gate_up, ashlar_activation activation) {
    return Guarded([&]() -> int { return GatedActivation(*d, out, gate_up, activation); });
  };
  t.add = [](ashlar_device* d, ashlar_stream*, ashlar_tensor sum, ashlar_tensor x) {
    return Guarded([&]() -> int { return Add(*d, sum, x); });
  };
  t.copy_blocks = [](ashlar_device* d, ashlar_stream*, void* base, const int64_t* pairs, int32_t n,
                     int64_t bytes) {
    return Guarded([&]() -> int { return CopyBlocks(*d, base, pairs, n, bytes); });
  };
  t.row_launches = [](const ashlar_device* d, int32_t row) {
    return row < 0 || row >= ashlar_cpu_row_count ? int64_t{0} : d->launches[row];
  };
  return t;
}

}  // namespace

extern "C" const ashlar_plugin* ashlar_plugin_table(void) {
  static const ashlar_plugin table = MakeTable();
  return &table;
}
