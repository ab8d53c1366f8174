#include "device/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/checked.h"

namespace ashlar {
namespace {

constexpr size_t kMaxRank = std::size(decltype(ashlar_tensor::shape){});

bool IsMatrix(const Tensor& t) { return t.shape.size() == 2; }

bool SameMatrix(const Tensor& a, const Tensor& b) {
  return IsMatrix(a) && a.shape == b.shape && a.dtype == b.dtype;
}

bool IsVector(const Tensor& t, int64_t size) {
  return t.dtype == DType::kF32 && t.shape.size() == 1 && t.shape[0] == size;
}

void CheckProjection(const Projection& p) {
  Check(IsMatrix(p.x) && IsMatrix(p.out) && p.x.shape[0] == p.out.shape[0] &&
            p.x.shape[1] == p.weight->cols() &&
            p.out.shape[1] * (p.gated ? 2 : 1) == p.weight->rows(),
        "project: x is [m, cols], out [m, rows] of the weight, half of them when gated");
  Check(!p.gated || (p.bias.data == nullptr && p.residual.data == nullptr),
        "project: neither bias nor residual is gated");
  Check(p.norm.data == nullptr || IsVector(p.norm, p.x.shape[1]), "project: norm is f32 [cols]");
  Check(p.residual.data == nullptr || SameMatrix(p.residual, p.out),
        "project: residual is like out");
}

// Bytes of a part's values; the caller states them, so a mismatch is ours.
void CheckParts(std::span<const WeightPart> parts, int64_t cols) {
  Check(!parts.empty() && parts.size() <= ASHLAR_MAX_PARTS, "a weight has 1 to 4 parts");
  Check(cols > 0, "a weight has columns");
  for (const WeightPart& part : parts) Check(part.rows > 0, "each part of a weight has rows");
}

ashlar_weight_desc Describe(std::span<const WeightPart> parts, int64_t cols, bool gathered,
                            bool fp8) {
  CheckParts(parts, cols);
  ashlar_weight_desc desc{};
  desc.parts = static_cast<int32_t>(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    desc.dtype[i] = static_cast<ashlar_dtype>(parts[i].dtype);
    desc.rows[i] = parts[i].rows;
  }
  desc.cols = cols;
  desc.gathered = gathered ? 1 : 0;
  desc.fp8 = fp8 ? 1 : 0;
  return desc;
}

}  // namespace

Tensor Tensor::Rows(int64_t rows) const {
  Check(!shape.empty() && rows >= 0 && rows <= shape[0], "Tensor::Rows stays inside the tensor");
  Tensor first = *this;
  first.shape[0] = rows;
  return first;
}

int64_t Tensor::bytes() const {
  const auto count = CheckedProduct(shape);
  Check(count.has_value(), "a tensor's size fits 64 bits");
  const auto size = StorageBytes(dtype, *count);
  Check(size.has_value(), "a tensor holds whole storage blocks");
  return *size;
}

ashlar_tensor ToC(const Tensor& tensor) {
  Check(tensor.shape.size() <= kMaxRank, "a tensor has at most 4 dimensions");
  ashlar_tensor c{};
  c.data = tensor.data;
  c.dtype = static_cast<ashlar_dtype>(tensor.dtype);
  c.rank = static_cast<int32_t>(tensor.shape.size());
  int64_t stride = Info(tensor.dtype).bytes;
  for (int i = c.rank - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    c.shape[at] = tensor.shape[at];
    c.stride[at] = stride;
    // The innermost extent of a block type is counted in values, its stride in storage blocks.
    const int64_t elements = i == c.rank - 1 ? Info(tensor.dtype).elements : 1;
    stride *= tensor.shape[at] / elements;
  }
  return c;
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) device_->plugin_.table().release(device_->device_, data_);
}

Weight::Weight(Weight&& other) noexcept { *this = std::move(other); }

Weight& Weight::operator=(Weight&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(weight_, other.weight_);
  std::swap(rows_, other.rows_);
  std::swap(cols_, other.cols_);
  return *this;
}

Weight::~Weight() {
  if (weight_ != nullptr) device_->plugin_.table().weight_destroy(device_->device_, weight_);
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept { *this = std::move(other); }

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(plain_, other.plain_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostBuffer::~HostBuffer() {
  if (device_ != nullptr) device_->plugin_.table().host_release(device_->device_, data_);
}

Mark::Mark(Mark&& other) noexcept { *this = std::move(other); }

Mark& Mark::operator=(Mark&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(event_, other.event_);
  return *this;
}

Mark::~Mark() {
  if (event_ != nullptr) device_->plugin_.table().event_destroy(device_->device_, event_);
}

Graph::Graph(Graph&& other) noexcept { *this = std::move(other); }

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(graph_, other.graph_);
  return *this;
}

Graph::~Graph() {
  if (graph_ != nullptr) device_->plugin_.table().graph_destroy(device_->device_, graph_);
}

Result<std::unique_ptr<Device>> Device::Open(const Plugin& plugin, const DeviceOptions& options) {
  std::unique_ptr<Device> device(new Device(plugin));
  const ashlar_open args{options.index, options.threads, options.invariant ? 1 : 0};
  const ashlar_plugin& table = plugin.table();
  if (Status opened = device->Checked(table.open(&args, &device->device_), "open"); !opened.ok()) {
    return opened.problems();
  }
  if (table.stream_create != nullptr) {
    Status made =
        device->Checked(table.stream_create(device->device_, &device->stream_), "stream_create");
    if (!made.ok()) return made.problems();
  }
  return device;
}

Device::~Device() {
  if (device_ == nullptr) return;
  if (stream_ != nullptr) plugin_.table().stream_destroy(device_, stream_);
  plugin_.table().close(device_);
}

Status Device::Checked(int code, std::string_view op) const {
  if (code == ASHLAR_OK) return Done{};
  const char* reason = plugin_.table().last_error();
  return Problem{fmt::format("plugin {} {}", plugin_.name(), op),
                 reason == nullptr || *reason == '\0' ? "failed without a reason" : reason, "", ""};
}

Result<Buffer> Device::Alloc(int64_t bytes) const {
  Buffer buffer;
  Status made = Checked(plugin_.table().alloc(device_, bytes, &buffer.data_), "alloc");
  if (!made.ok()) {
    buffer.data_ = nullptr;
    return made.problems();
  }
  buffer.device_ = this;
  buffer.bytes_ = bytes;
  return buffer;
}

Status Device::CopyIn(void* to, std::span<const std::byte> from) const {
  return Checked(
      plugin_.table().copy_in(device_, stream_, to, from.data(), static_cast<int64_t>(from.size())),
      "copy_in");
}

Status Device::CopyOut(std::span<std::byte> to, const void* from) const {
  return Checked(
      plugin_.table().copy_out(device_, stream_, to.data(), from, static_cast<int64_t>(to.size())),
      "copy_out");
}

Status Device::Sync() const {
  if (plugin_.table().stream_sync == nullptr) return Done{};
  return Checked(plugin_.table().stream_sync(device_, stream_), "stream_sync");
}

Result<HostBuffer> Device::AllocHost(int64_t bytes) const {
  HostBuffer buffer;
  buffer.bytes_ = bytes;
  if (plugin_.table().host_alloc == nullptr) {
    buffer.plain_.resize(static_cast<size_t>(bytes));
    buffer.data_ = buffer.plain_.data();
    return buffer;
  }
  Status made = Checked(plugin_.table().host_alloc(device_, bytes, &buffer.data_), "host_alloc");
  if (!made.ok()) return made.problems();
  buffer.device_ = this;
  return buffer;
}

Result<Mark> Device::CreateMark() const {
  Mark mark;
  if (plugin_.table().event_create == nullptr) return mark;
  Status made = Checked(plugin_.table().event_create(device_, &mark.event_), "event_create");
  if (!made.ok()) {
    mark.event_ = nullptr;
    return made.problems();
  }
  mark.device_ = this;
  return mark;
}

Status Device::Record(const Mark& mark) const {
  if (mark.event_ == nullptr) return Done{};
  return Checked(plugin_.table().event_record(device_, stream_, mark.event_), "event_record");
}

Status Device::Wait(const Mark& mark) const {
  if (mark.event_ == nullptr) return Done{};
  return Checked(plugin_.table().event_wait(device_, mark.event_), "event_wait");
}

Result<Graph> Device::Capture(const std::function<Status()>& ops) const {
  Check(has_graphs(), "only a plugin with graphs captures");
  Status begun = Checked(plugin_.table().graph_begin(device_, stream_), "graph_begin");
  if (!begun.ok()) return begun.problems();
  Status recorded = ops();
  Graph graph;
  Status ended = Checked(plugin_.table().graph_end(device_, stream_, &graph.graph_), "graph_end");
  if (ended.ok()) {
    graph.device_ = this;
  } else {
    graph.graph_ = nullptr;
  }
  if (!recorded.ok()) return recorded.problems();
  if (!ended.ok()) return ended.problems();
  return graph;
}

Status Device::Launch(const Graph& graph) const {
  return Checked(plugin_.table().graph_launch(device_, stream_, graph.graph_), "graph_launch");
}

int64_t Device::WeightBytes(std::span<const WeightPart> parts, int64_t cols, bool gathered,
                            bool fp8) const {
  const ashlar_weight_desc desc = Describe(parts, cols, gathered, fp8);
  return plugin_.table().weight_bytes(&desc);
}

Result<Weight> Device::CreateWeight(std::span<const WeightPart> parts, int64_t cols, bool gathered,
                                    bool fp8) const {
  const ashlar_weight_desc desc = Describe(parts, cols, gathered, fp8);
  std::array<const void*, ASHLAR_MAX_PARTS> sources{};
  Weight weight;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto row_bytes = StorageBytes(parts[i].dtype, cols);
    Check(row_bytes &&
              CheckedMul(*row_bytes, parts[i].rows) == static_cast<int64_t>(parts[i].bytes.size()),
          "a weight part has as many bytes as its shape says");
    sources[i] = parts[i].bytes.data();
    weight.rows_ += parts[i].rows;
  }
  weight.cols_ = cols;
  Status made =
      Checked(plugin_.table().weight_create(device_, &desc, sources.data(), &weight.weight_),
              "weight_create");
  if (!made.ok()) {
    weight.weight_ = nullptr;
    return made.problems();
  }
  weight.device_ = this;
  return weight;
}

Status Device::Embed(const Tensor& out, const Weight& weight, const int32_t* ids,
                     float scale) const {
  Check(IsMatrix(out) && out.shape[1] == weight.cols(), "embed: out is [n, cols]");
  return Checked(plugin_.table().embed(device_, stream_, ToC(out), weight.weight_, ids, scale),
                 "embed");
}

Status Device::Gather(const Tensor& out, const Tensor& x, const int32_t* rows) const {
  Check(IsMatrix(out) && IsMatrix(x) && out.shape[1] == x.shape[1] && out.dtype == x.dtype,
        "gather: out and x have the same columns");
  return Checked(plugin_.table().gather(device_, stream_, ToC(out), ToC(x), rows), "gather");
}

Status Device::RmsNorm(const Tensor& out, const Tensor& x, const Tensor& weight, float eps) const {
  Check(SameMatrix(out, x) && IsVector(weight, x.shape[1]),
        "rms_norm: out and x are [n, cols], weight f32 [cols]");
  return Checked(plugin_.table().rms_norm(device_, stream_, ToC(out), ToC(x), ToC(weight), eps),
                 "rms_norm");
}

Status Device::Matmul(const Tensor& out, const Tensor& x, const Weight& weight,
                      const Tensor& bias) const {
  Check(IsMatrix(out) && IsMatrix(x) && out.shape[0] == x.shape[0],
        "matmul: out and x have m rows");
  Check(x.shape[1] == weight.cols() && out.shape[1] == weight.rows(),
        "matmul: x is [m, cols] and out [m, rows] of the weight");
  Check(bias.data == nullptr || IsVector(bias, weight.rows()), "matmul: bias is f32 [rows]");
  return Checked(
      plugin_.table().matmul(device_, stream_, ToC(out), ToC(x), weight.weight_, ToC(bias)),
      "matmul");
}

Status Device::QkvPrepare(const ashlar_qkv_prepare& args) const {
  return Checked(plugin_.table().qkv_prepare(device_, stream_, &args), "qkv_prepare");
}

void Device::CheckRow(int row) const {
  Check(row >= 0 && row < static_cast<int>(plugin_.rows().size()),
        "attention: the row is the plugin's own");
}

Status Device::Attention(int row, const ashlar_attention& args) const {
  CheckRow(row);
  return Checked(plugin_.table().attention(device_, stream_, row, &args), "attention");
}

Status Device::GatedActivation(const Tensor& out, const Tensor& gate_up,
                               ashlar_activation activation) const {
  Check(IsMatrix(out) && IsMatrix(gate_up) && out.shape[0] == gate_up.shape[0] &&
            gate_up.shape[1] == 2 * out.shape[1],
        "gated_activation: gate_up is [n, 2 * width], out [n, width]");
  return Checked(
      plugin_.table().gated_activation(device_, stream_, ToC(out), ToC(gate_up), activation),
      "gated_activation");
}

Status Device::Add(const Tensor& sum, const Tensor& x) const {
  Check(SameMatrix(sum, x), "add: sum and x are [n, cols]");
  return Checked(plugin_.table().add(device_, stream_, ToC(sum), ToC(x)), "add");
}

Status Device::CopyBlocks(void* base, std::span<const int64_t> from_to_pairs, int64_t bytes) const {
  Check(from_to_pairs.size() % 2 == 0, "copy_blocks: offsets come in pairs");
  return Checked(plugin_.table().copy_blocks(device_, stream_, base, from_to_pairs.data(),
                                             static_cast<int32_t>(from_to_pairs.size() / 2), bytes),
                 "copy_blocks");
}

ashlar_projection Device::ProjectionToC(const Projection& p) {
  CheckProjection(p);
  return {ToC(p.out), ToC(p.x),        p.weight->weight_, ToC(p.bias), ToC(p.norm),
          p.eps,      ToC(p.residual), p.gated ? 1 : 0,   p.activation};
}

Status Device::Project(const Projection& args) const {
  const ashlar_projection c = ProjectionToC(args);
  return Checked(plugin_.table().project(device_, stream_, &c), "project");
}

ashlar_layer Device::LayerToC(const LayerOps& ops) const {
  CheckRow(ops.row);
  return {ProjectionToC(ops.qkv),
          ops.prepare,
          ops.row,
          ops.attention,
          ProjectionToC(ops.output),
          ProjectionToC(ops.gate_up),
          ProjectionToC(ops.down)};
}

Result<bool> Device::Layers(std::span<const ashlar_layer> layers) const {
  int32_t taken = 0;
  Status done = Checked(plugin_.table().layers(device_, stream_, layers.data(),
                                               static_cast<int32_t>(layers.size()), &taken),
                        "layers");
  if (!done.ok()) return done.problems();
  return taken != 0;
}

Status Device::Sample(const Tensor& logits, const ashlar_draw* draws, int32_t* ids) const {
  Check(IsMatrix(logits) && logits.dtype == DType::kF32, "sample: logits are f32 [n, vocab]");
  return Checked(plugin_.table().sample(device_, stream_, ToC(logits), draws, ids), "sample");
}

Status Device::ResolveIds(int32_t* ids, const int32_t* from, int count) const {
  return Checked(plugin_.table().resolve_ids(device_, stream_, ids, from, count), "resolve_ids");
}

int64_t Device::RowLaunches(int row) const { return plugin_.table().row_launches(device_, row); }

}  // namespace ashlar
