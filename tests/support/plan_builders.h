// Rows, machines, models and specs made by hand, for tests of planning.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/config.h"
#include "plan/plan.h"
#include "plan/request.h"
#include "probe/platform.h"
#include "spec/spec.h"

namespace ashlar::testing {

inline BlockRule Multiple(int tokens) { return {tokens, true}; }
inline BlockRule Exact(int tokens) { return {tokens, false}; }

// A row that takes everything but what its kernel blocks say.
inline AttentionRow AnyRow(std::string name, std::vector<BlockRule> kernel_blocks = {Multiple(16)},
                           std::string platform = "cpu") {
  AttentionRow row;
  row.name = std::move(name);
  row.platform = std::move(platform);
  row.kinds = {KvKind::kFull, KvKind::kSliding};
  row.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  row.kv_dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  row.kernel_blocks = std::move(kernel_blocks);
  row.window = row.kv_connector = row.batch_invariant = true;
  return row;
}

// The same whose manager block must be exactly one of `sizes`.
inline AttentionRow ExactManagerRow(std::string name, std::vector<int> sizes) {
  AttentionRow row = AnyRow(std::move(name), {});
  for (int size : sizes) {
    row.kernel_blocks.push_back(Exact(size));
    row.manager_blocks.push_back(Exact(size));
  }
  return row;
}

inline std::vector<KvLayout> AllLayouts() {
  return {KvLayout::kLBHNC, KvLayout::kLBNHC, KvLayout::kBLHNC,
          KvLayout::kBLNHC, KvLayout::kBHLNC, KvLayout::kLHBNC};
}

inline AttentionRow CpuPaged() {
  AttentionRow row = AnyRow("CPU_PAGED");
  row.kinds = {KvKind::kFull};
  row.dtypes = {DType::kF32};
  row.head_multiple = 16;
  row.preferred_block = 32;
  row.layouts = AllLayouts();
  row.window = false;
  return row;
}

inline AttentionRow CpuWindow() {
  AttentionRow row = CpuPaged();
  row.name = "CPU_WINDOW";
  row.kinds = {KvKind::kSliding};
  row.window = true;
  return row;
}

inline AttentionRow Reference() {
  AttentionRow row = AnyRow("REFERENCE", {Multiple(1)}, "reference");
  row.dtypes = {DType::kF32};
  row.preferred_block = 16;
  row.any_strides = true;
  return row;
}

inline DeviceInfo CpuDevice(int64_t free_bytes = int64_t{8} << 30) {
  DeviceInfo device;
  device.platform = "cpu";
  device.product = "Test CPU";
  device.capability = {CapabilityUnit::kCpu, kAvx2, {"avx2"}};
  device.memory_space = "host";
  device.memory_bytes = int64_t{16} << 30;
  device.free_bytes = free_bytes;
  device.threads = 2;
  return device;
}

inline DeviceInfo CudaDevice(uint32_t capability, int index = 0,
                             int64_t free_bytes = int64_t{80} << 30) {
  DeviceInfo device;
  device.platform = "cuda";
  device.index = index;
  device.product = "Test GPU";
  device.capability = {CapabilityUnit::kCuda,
                       capability,
                       {std::to_string(capability / 10) + "." + std::to_string(capability % 10)}};
  device.memory_space = "cuda:" + std::to_string(index);
  device.memory_bytes = device.free_bytes = free_bytes;
  return device;
}

inline Platform CpuPlatform() {
  Platform platform;
  platform.name = "laptop";
  platform.probes = {{"cuda", ProbeOutcome::kAbsent, "no libcuda.so.1", ""},
                     {"hip", ProbeOutcome::kAbsent, "no /dev/kfd", ""},
                     {"cpu", ProbeOutcome::kFound, "avx2", ""},
                     {"reference", ProbeOutcome::kFound, "", ""}};
  platform.devices = {CpuDevice()};
  platform.rows = {CpuPaged(), CpuWindow(), Reference()};
  return platform;
}

inline Target TargetOf(DeviceInfo device, std::vector<std::string> platforms) {
  Target target;
  target.present = platforms;
  target.platforms = std::move(platforms);
  target.device = std::move(device);
  return target;
}
inline Target CpuTarget() { return TargetOf(CpuDevice(), {"cpu", "reference"}); }

inline LayerSpec FullLayer(int heads = 9, int kv_heads = 3, int head_dim = 64) {
  LayerSpec layer;
  layer.heads = heads;
  layer.kv_heads = kv_heads;
  layer.head_dim = layer.head_dim_v = head_dim;
  layer.scale = 0.125f;
  return layer;
}

inline LayerSpec SlidingLayer(int window, int heads = 4, int kv_heads = 2, int head_dim = 32) {
  LayerSpec layer = FullLayer(heads, kv_heads, head_dim);
  layer.kind = KvKind::kSliding;
  layer.window = window;
  return layer;
}

// SmolLM2-135M: 30 full layers.
inline ModelConfig DenseModel() {
  ModelConfig model;
  model.architecture = "llama";
  model.family = "LlamaForCausalLM";
  model.hidden = 576;
  model.intermediate = 1536;
  model.vocab = 49152;
  model.layers.assign(30, FullLayer());
  model.ropes = {Rope{}};
  model.context_length = 8192;
  return model;
}

// Five sliding layers, then a full one, as in the embedded demo model.
inline ModelConfig HybridModel() {
  ModelConfig model;
  model.architecture = "gemma3";
  model.family = "Gemma3ForCausalLM";
  model.hidden = 128;
  model.intermediate = 512;
  model.vocab = 2048;
  model.layers.assign(5, SlidingLayer(128));
  model.layers.push_back(FullLayer(4, 2, 32));
  model.ropes = {Rope{}, Rope{}};
  model.context_length = 1024;
  return model;
}

inline Spec BasicSpec(std::string name = "test") {
  Spec spec;
  spec.name = std::move(name);
  spec.origins.SetDocument("model.yaml");
  return spec;
}

// The spec with a field set and its place known, as the loader leaves it.
inline Spec Placed(Spec spec, const std::string& field, int line, int column) {
  spec.origins.Set(field, "model.yaml:" + std::to_string(line) + ":" + std::to_string(column));
  return spec;
}

}  // namespace ashlar::testing
