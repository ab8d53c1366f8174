/* A usable plugin that computes nothing: two rows whose kernels write their own mark, streams, and
 * counts of what is alive, told through probe's detail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ashlar_plugin.h"

#ifdef STUB_FAULTY
#define NAME "faulty"
#else
#define NAME "stub"
#endif

struct ashlar_device {
  int64_t launches[2];
};
struct ashlar_stream {
  int unused;
};
struct ashlar_weight {
  int unused;
};

static int devices, buffers, weights, streams, syncs;
static const char* error = "";

static int Failed(const char* line) {
  error = line;
  return ASHLAR_FAILED;
}

static const char* LastError(void) { return error; }

static int Probe(ashlar_probe* out) {
#ifdef STUB_FAULTY
  out->outcome = 0;
  return Failed("the driver answered 999");
#endif
  memset(out, 0, sizeof *out);
  out->devices = 1;
  snprintf(out->detail, sizeof out->detail, "devices %d buffers %d weights %d streams %d syncs %d",
           devices, buffers, weights, streams, syncs);
  return ASHLAR_OK;
}

static int Open(const ashlar_open* args, ashlar_device** out) {
  if (args->index > 0) return Failed("there is only device 0");
  *out = calloc(1, sizeof **out);
  ++devices;
  return ASHLAR_OK;
}

static void Close(ashlar_device* device) {
  --devices;
  free(device);
}

static int Alloc(ashlar_device* device, int64_t bytes, void** out) {
  (void)device;
  if (bytes > 1000) return Failed("1000 bytes is all there is");
  *out = calloc(1, (size_t)bytes);
  ++buffers;
  return ASHLAR_OK;
}

static void Release(ashlar_device* device, void* memory) {
  (void)device;
  --buffers;
  free(memory);
}

static int Copy(ashlar_device* device, ashlar_stream* stream, void* to, const void* from,
                int64_t bytes) {
  (void)device, (void)stream;
  memcpy(to, from, (size_t)bytes);
  return ASHLAR_OK;
}

static int StreamCreate(ashlar_device* device, ashlar_stream** out) {
  (void)device;
  *out = calloc(1, sizeof **out);
  ++streams;
  return ASHLAR_OK;
}

static void StreamDestroy(ashlar_device* device, ashlar_stream* stream) {
  (void)device;
  --streams;
  free(stream);
}

static int StreamSync(ashlar_device* device, ashlar_stream* stream) {
  (void)device;
  if (stream == NULL) return Failed("no stream");
  ++syncs;
  return ASHLAR_OK;
}

static int64_t WeightBytes(const ashlar_weight_desc* desc) {
  return desc->parts * 1000000 + desc->gathered * 100000 + desc->rows[0] * 100 + desc->cols;
}

static int WeightCreate(ashlar_device* device, const ashlar_weight_desc* desc,
                        const void* const* sources, ashlar_weight** out) {
  (void)device, (void)desc;
  if (sources[0] == NULL) return Failed("a part without bytes");
  *out = calloc(1, sizeof **out);
  ++weights;
  return ASHLAR_OK;
}

static void WeightDestroy(ashlar_device* device, ashlar_weight* weight) {
  (void)device;
  --weights;
  free(weight);
}

static int Embed(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out,
                 const ashlar_weight* weight, const int32_t* ids, float scale) {
  (void)device, (void)stream, (void)out, (void)weight, (void)ids, (void)scale;
  return Failed("embed failed without a reason worth reading");
}
static int Gather(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
                  const int32_t* rows) {
  (void)device, (void)stream, (void)out, (void)x, (void)rows;
  return ASHLAR_OK;
}
static int RmsNorm(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
                   ashlar_tensor weight, float eps) {
  (void)device, (void)stream, (void)out, (void)x, (void)weight, (void)eps;
  return ASHLAR_OK;
}
static int Matmul(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out, ashlar_tensor x,
                  const ashlar_weight* weight, ashlar_tensor bias) {
  (void)device, (void)stream, (void)out, (void)x, (void)weight, (void)bias;
  return ASHLAR_OK;
}
static int QkvPrepare(ashlar_device* device, ashlar_stream* stream,
                      const ashlar_qkv_prepare* args) {
  (void)device, (void)stream, (void)args;
  return ASHLAR_OK;
}
static int GatedActivation(ashlar_device* device, ashlar_stream* stream, ashlar_tensor out,
                           ashlar_tensor gate_up, ashlar_activation activation) {
  (void)device, (void)stream, (void)out, (void)gate_up, (void)activation;
  return ASHLAR_OK;
}
static int Add(ashlar_device* device, ashlar_stream* stream, ashlar_tensor sum, ashlar_tensor x) {
  (void)device, (void)stream, (void)sum, (void)x;
  return ASHLAR_OK;
}
static int CopyBlocks(ashlar_device* device, ashlar_stream* stream, void* base,
                      const int64_t* pairs, int32_t n, int64_t bytes) {
  (void)device, (void)stream, (void)base, (void)pairs, (void)n, (void)bytes;
  return ASHLAR_OK;
}

static int Attention(ashlar_device* device, ashlar_stream* stream, int32_t row,
                     const ashlar_attention* args) {
  (void)stream;
  *(float*)args->out.data = row == 0 ? 1.0f : 2.0f;
  ++device->launches[row];
  return ASHLAR_OK;
}

static int64_t RowLaunches(const ashlar_device* device, int32_t row) {
  return device->launches[row];
}

static const ashlar_row rows[] = {{.name = "STUB_ONE", .platform = NAME},
                                  {.name = "STUB_TWO", .platform = NAME}};

const ashlar_plugin* ashlar_plugin_table(void) {
  static const ashlar_plugin table = {
      .abi = ASHLAR_PLUGIN_ABI,
      .table_bytes = sizeof(ashlar_plugin),
      .name = NAME,
      .memory = "stub",
      .rows = rows,
      .row_count = 2,
      .probe = Probe,
      .last_error = LastError,
      .open = Open,
      .close = Close,
      .alloc = Alloc,
      .release = Release,
      .copy_in = Copy,
      .copy_out = Copy,
      .stream_create = StreamCreate,
      .stream_destroy = StreamDestroy,
      .stream_sync = StreamSync,
      .weight_bytes = WeightBytes,
      .weight_create = WeightCreate,
      .weight_destroy = WeightDestroy,
      .embed = Embed,
      .gather = Gather,
      .rms_norm = RmsNorm,
      .matmul = Matmul,
      .qkv_prepare = QkvPrepare,
      .attention = Attention,
      .gated_activation = GatedActivation,
      .add = Add,
      .copy_blocks = CopyBlocks,
      .row_launches = RowLaunches,
  };
  return &table;
}
