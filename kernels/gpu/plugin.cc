// The table of a GPU platform.
#include "ashlar_plugin.h"
#include "device.h"
#include "ops.h"
#include "weight.h"

namespace {

namespace kernels = ashlar::gpu_kernels;

ashlar_plugin MakeTable() {
  const kernels::Platform& platform = kernels::ThisPlatform();
  ashlar_plugin table{};
  table.abi = ASHLAR_PLUGIN_ABI;
  table.table_bytes = sizeof table;
  table.name = platform.name;
  table.memory = platform.name;
  table.invariant_ops = 1;
  table.rows = platform.rows;
  table.row_count = platform.row_count;
  table.probe = kernels::Probe;
  table.last_error = ashlar::LastError;
  table.open = kernels::Open;
  table.close = kernels::Close;
  table.alloc = kernels::Alloc;
  table.release = kernels::Release;
  table.copy_in = kernels::CopyIn;
  table.copy_out = kernels::CopyOut;
  table.stream_create = kernels::StreamCreate;
  table.stream_destroy = kernels::StreamDestroy;
  table.stream_sync = kernels::StreamSync;
#if !defined(ASHLAR_GPU_HOST)
  table.graph_begin = kernels::GraphBegin;
  table.graph_end = kernels::GraphEnd;
  table.graph_launch = kernels::GraphLaunch;
  table.graph_destroy = kernels::GraphDestroy;
#endif
  table.weight_bytes = kernels::WeightBytes;
  table.weight_create = kernels::WeightCreate;
  table.weight_destroy = kernels::WeightDestroy;
  table.embed = kernels::Embed;
  table.gather = kernels::Gather;
  table.rms_norm = kernels::RmsNorm;
  table.matmul = kernels::Matmul;
  table.qkv_prepare = kernels::QkvPrepare;
  table.attention = kernels::Attention;
  table.gated_activation = kernels::GatedActivation;
  table.add = kernels::Add;
  table.copy_blocks = kernels::CopyBlocks;
  table.row_launches = kernels::RowLaunches;
  table.activations = ASHLAR_BF16;
  table.project = kernels::Project;
  table.sample = kernels::Sample;
  table.resolve_ids = kernels::ResolveIds;
  table.host_alloc = kernels::HostAlloc;
  table.host_release = kernels::HostRelease;
  table.event_create = kernels::EventCreate;
  table.event_destroy = kernels::EventDestroy;
  table.event_record = kernels::EventRecord;
  table.event_wait = kernels::EventWait;
  table.layers = kernels::Layers;
  return table;
}

}  // namespace

extern "C" const ashlar_plugin* ashlar_plugin_table(void) {
  static const ashlar_plugin table = MakeTable();
  return &table;
}
