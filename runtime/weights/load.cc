#include <fmt/format.h>

#include <initializer_list>

#include "base/checked.h"
#include "weights/floats.h"
#include "weights/needs.h"
#include "weights/source.h"
#include "weights/weights.h"

namespace ashlar {
namespace {

constexpr int64_t kVectorAlignment = 64;  // bytes

int64_t Aligned(int64_t floats) {
  return RoundUp<int64_t>(floats * static_cast<int64_t>(sizeof(float)), kVectorAlignment);
}

int64_t Values(std::initializer_list<const TensorNeed*> parts) {
  int64_t count = 0;
  for (const TensorNeed* part : parts) {
    if (!part->name.empty()) count += part->shape[0];
  }
  return count;
}

// Carries each tensor over, once; the tensors were compared with the needs before. The first
// failure ends the load.
class Loader {
 public:
  Loader(const Checkpoint& checkpoint, const ModelConfig& config, const Device& device,
         const ModelNeeds& needs, const LoadProgress& progress, bool fp8)
      : checkpoint_(checkpoint),
        config_(config),
        device_(device),
        needs_(needs),
        fp8_(fp8),
        source_(checkpoint, TotalBytes(), progress) {}

  Result<ModelWeights> Load() {
    AllocateVectors();
    UploadRopes();
    Matrix(out_.embedding, {&needs_.embedding}, {.gathered = true});
    if (!config_.tied_head) Matrix(out_.head, {&needs_.head}, {});
    Norm(out_.final_norm, needs_.final_norm);
    for (const LayerNeeds& layer : needs_.layers) {
      if (!problems_.empty()) break;
      Layer(out_.layers.emplace_back(), layer);
    }
    if (problems_.empty()) Keep(device_.Sync());
    if (!problems_.empty()) return std::move(problems_);
    Check(next_ == end_, "the buffer of vectors is filled exactly");
    return std::move(out_);
  }

 private:
  int64_t TotalBytes() const {
    int64_t total = 0;
    for (const TensorNeed* need : needs_.all())
      total += static_cast<int64_t>(checkpoint_.Find(need->name)->bytes);
    return total;
  }

  void Keep(const Status& status) {
    if (problems_.empty() && !status.ok()) problems_ = status.problems();
  }

  // Norms, biases and rope frequencies are small and many: they share one allocation.
  void AllocateVectors() {
    int64_t bytes = Aligned(config_.hidden);
    for (const Rope& rope : config_.ropes) bytes += Aligned(std::ssize(rope.inv_freq));
    for (const LayerNeeds& l : needs_.layers) {
      for (const TensorNeed* norm : {&l.attention_norm, &l.mlp_norm, &l.post_attention_norm,
                                     &l.post_mlp_norm, &l.q_norm, &l.k_norm, &l.o_bias}) {
        bytes += Aligned(Values({norm}));
      }
      bytes += Aligned(Values({&l.q_bias, &l.k_bias, &l.v_bias}));
    }
    Result<Buffer> buffer = device_.Alloc(bytes);
    if (!buffer) {
      problems_ = buffer.problems();
      return;
    }
    next_ = static_cast<std::byte*>(buffer->data());
    end_ = next_ + bytes;
    out_.buffers.push_back(std::move(*buffer));
  }

  Tensor Upload(std::span<const float> values) {
    Tensor tensor = Tensor::Of(next_, DType::kF32, {std::ssize(values)});
    next_ += Aligned(std::ssize(values));
    if (!values.empty()) Keep(device_.CopyIn(tensor.data, std::as_bytes(values)));
    return tensor;
  }

  void UploadRopes() {
    if (!problems_.empty()) return;
    for (const Rope& rope : config_.ropes)
      out_.inv_freq.push_back(static_cast<const float*>(Upload(rope.inv_freq).data));
  }

  void Layer(LayerWeights& out, const LayerNeeds& layer) {
    Norm(out.attention_norm, layer.attention_norm);
    Matrix(out.qkv, {&layer.q, &layer.k, &layer.v}, {.fp8 = fp8_});
    Vector(out.qkv_bias, {&layer.q_bias, &layer.k_bias, &layer.v_bias}, 0);
    Norm(out.q_norm, layer.q_norm);
    Norm(out.k_norm, layer.k_norm);
    Matrix(out.output, {&layer.o}, {.fp8 = fp8_});
    Vector(out.output_bias, {&layer.o_bias}, 0);
    Norm(out.post_attention_norm, layer.post_attention_norm);
    Norm(out.mlp_norm, layer.mlp_norm);
    Matrix(out.gate_up, {&layer.gate, &layer.up}, {.fp8 = fp8_});
    Matrix(out.down, {&layer.down}, {.fp8 = fp8_});
    Norm(out.post_mlp_norm, layer.post_mlp_norm);
  }

  // safetensors keep the norm weights of some families as w - 1; GGUF always holds w.
  void Norm(Tensor& out, const TensorNeed& need) {
    const bool offset =
        config_.unit_offset_norms && checkpoint_.format == Checkpoint::Format::kSafetensors;
    Vector(out, {&need}, offset ? 1.0f : 0.0f);
  }

  // The parts one after another as f32; nothing when the model has none of them.
  void Vector(Tensor& out, std::initializer_list<const TensorNeed*> parts, float offset) {
    const int64_t count = Values(parts);
    if (!problems_.empty() || count == 0) return;
    std::vector<float> values(static_cast<size_t>(count));
    std::span<float> rest = values;
    for (const TensorNeed* part : parts) {
      const TensorInfo& tensor = *checkpoint_.Find(part->name);
      Result<std::span<const std::byte>> bytes = source_.Open(tensor);
      if (!bytes) {
        problems_ = bytes.problems();
        return;
      }
      const size_t size = static_cast<size_t>(tensor.shape[0]);
      ToFloats(tensor.dtype, *bytes, offset, rest.first(size));
      rest = rest.subspan(size);
      source_.Drop(tensor);
    }
    out = Upload(values);
  }

  struct Use {
    bool gathered = false, fp8 = false;
  };
  // The parts stacked as one matrix [sum of rows, cols], each in its own dtype.
  void Matrix(Weight& out, std::initializer_list<const TensorNeed*> needs, Use use) {
    if (!problems_.empty()) return;
    std::vector<const TensorInfo*> tensors;
    std::vector<WeightPart> parts;
    for (const TensorNeed* need : needs) {
      const TensorInfo& tensor = *checkpoint_.Find(need->name);
      Result<std::span<const std::byte>> bytes = source_.Open(tensor);
      if (!bytes) {
        problems_ = bytes.problems();
        return;
      }
      tensors.push_back(&tensor);
      parts.push_back({tensor.dtype, tensor.shape[0], *bytes});
    }
    const int64_t cols = tensors[0]->shape[1];
    Result<Weight> weight = device_.CreateWeight(parts, cols, use.gathered, use.fp8);
    if (!weight) {
      problems_ = weight.problems();
      for (Problem& problem : problems_) problem.place += " " + (*needs.begin())->name;
      return;
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      // A plugin may copy one part of a stack and read another in place.
      const bool in_place = device_.WeightBytes(std::span<const WeightPart>(parts).subspan(i, 1),
                                                cols, use.gathered, use.fp8) == 0;
      in_place ? source_.Keep(*tensors[i]) : source_.Drop(*tensors[i]);
    }
    out = std::move(*weight);
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const Device& device_;
  const ModelNeeds& needs_;
  bool fp8_;
  WeightSource source_;
  ModelWeights out_;
  std::byte* next_ = nullptr;  // in the buffer of vectors
  std::byte* end_ = nullptr;
  Problems problems_;
};

}  // namespace

Result<ModelWeights> LoadWeights(const Checkpoint& checkpoint, const ModelConfig& config,
                                 const Device& device, const LoadProgress& progress, bool fp8) {
  if (checkpoint.format == Checkpoint::Format::kConfigOnly) {
    return Problem{checkpoint.path, "has no weights", "a .gguf, or a folder with *.safetensors",
                   "a config.json alone can only be planned"};
  }
  const ModelNeeds needs = NeedsOf(config, checkpoint.format);
  Problems problems = CompareTensors(checkpoint, config, needs);
  if (!problems.empty()) return problems;
  return Loader(checkpoint, config, device, needs, progress, fp8).Load();
}

}  // namespace ashlar
