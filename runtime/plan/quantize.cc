// Weights that the spec wants quantised: which devices have kernels for them, and what they take.
#include <fmt/format.h>

#include <array>

#include "plan/draft.h"

namespace ashlar {
namespace {

// Products with F8_E4M3 weights, by platform.
struct Fp8Device {
  std::string_view platform;
  CapabilityUnit unit;
  uint32_t least;
};
constexpr std::array<Fp8Device, 1> kFp8Devices = {{{"cuda", CapabilityUnit::kCuda, 89}}};

bool HasFp8(const DeviceInfo& device) {
  for (const Fp8Device& known : kFp8Devices) {
    if (known.platform == device.platform && known.unit == device.capability.unit &&
        device.capability.value >= known.least) {
      return true;
    }
  }
  return false;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// Rows of all matrices of the layers: each has a float32 scale.
int64_t ScaledRows(const ModelConfig& model) {
  int64_t rows = 0;
  for (const LayerSpec& layer : model.layers) {
    const int64_t dim_v = layer.head_dim_v > 0 ? layer.head_dim_v : layer.head_dim;
    rows += int64_t{layer.heads + layer.kv_heads} * layer.head_dim + layer.kv_heads * dim_v;
    rows += 2 * model.intermediate + 2 * model.hidden;
  }
  return rows;
}

}  // namespace

void CheckQuantization(Draft& draft) {
  if (draft.spec.quantization != "fp8") return;
  const DeviceInfo& device = draft.selector->target().device;
  const std::string place = draft.spec.origins.Place("quantization");
  if (!HasFp8(device)) {
    draft.problems.push_back({place, fmt::format("{} has no fp8 products", device.product),
                              "an NVIDIA GPU of compute capability 8.9 or newer",
                              "remove quantization, or choose such a device"});
  }
  if (!draft.model.quantization.method.empty() || !IsFloat(draft.model.weight_dtype)) {
    draft.problems.push_back({place, "the checkpoint's weights are quantised already",
                              "weights in float32, float16 or bfloat16",
                              "remove quantization, or serve the unquantised checkpoint"});
  }
  draft.plan.quantization = draft.spec.quantization;
}

int64_t WeightBytes(const Draft& draft) {
  if (draft.plan.quantization.empty()) return draft.weights.bytes;
  const DTypeInfo& stored = Info(draft.model.weight_dtype);
  const double saved = draft.model.weights.linear * (stored.bytes - 1);
  return draft.weights.bytes - static_cast<int64_t>(saved) + 4 * ScaledRows(draft.model);
}

}  // namespace ashlar
