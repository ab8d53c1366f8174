// The table of the reference platform: plain loops over float32, the truth that other plugins are
// measured against.
#include "ashlar_plugin.h"
#include "ashlar_rows.h"
#include "device.h"
#include "ops.h"
#include "weight.h"

namespace {

namespace ref = ashlar::reference;

ashlar_plugin MakeTable() {
  ashlar_plugin table{};
  table.abi = ASHLAR_PLUGIN_ABI;
  table.table_bytes = sizeof table;
  table.name = "reference";
  table.memory = "host";
  table.invariant_ops = 1;
  table.rows = ashlar_reference_rows;
  table.row_count = ashlar_reference_row_count;
  table.probe = ref::Probe;
  table.last_error = ashlar::LastError;
  table.open = ref::Open;
  table.close = ref::Close;
  table.alloc = ref::Alloc;
  table.release = ref::Release;
  table.copy_in = ref::Copy;
  table.copy_out = ref::Copy;
  table.weight_bytes = ref::WeightBytes;
  table.weight_create = ref::WeightCreate;
  table.weight_destroy = ref::WeightDestroy;
  table.embed = ref::Embed;
  table.gather = ref::Gather;
  table.rms_norm = ref::RmsNorm;
  table.matmul = ref::Matmul;
  table.qkv_prepare = ref::QkvPrepare;
  table.attention = ref::Attention;
  table.gated_activation = ref::GatedActivation;
  table.add = ref::Add;
  table.copy_blocks = ref::CopyBlocks;
  table.row_launches = ref::RowLaunches;
  table.activations = ASHLAR_F32;
  table.sample = ref::Sample;
  table.resolve_ids = ref::ResolveIds;
  return table;
}

}  // namespace

extern "C" const ashlar_plugin* ashlar_plugin_table(void) {
  static const ashlar_plugin table = MakeTable();
  return &table;
}
