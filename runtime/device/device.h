// The plugins' C table made pleasant: loading, memory, tensors, typed ops. The only includer of
// ashlar_plugin.h in runtime/. A Device, its buffers and weights belong to one thread, the
// engine's. A failed op is a device fault: it returns the plugin's own line and the caller stops
// serving.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ashlar_plugin.h"
#include "base/dtype.h"
#include "base/result.h"
#include "device/row.h"

namespace ashlar {

// A row-major view in device memory; strides in bytes. Borrowed.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;

  static Tensor Of(void* data, DType dtype, std::vector<int64_t> shape) {
    return {data, dtype, std::move(shape)};
  }
  // First `rows` rows of the outermost dimension.
  Tensor Rows(int64_t rows) const;
  int64_t bytes() const;
};

// A loaded plugin. Stays loaded for the life of the process; const after loading.
class Plugin {
 public:
  // Checks the ABI number, the table size and every required pointer before calling anything.
  static Result<const Plugin*> Load(const std::string& path);

  std::string name() const { return table_->name; }  // "cpu"
  std::string memory() const {
    return table_->memory;
  }  // plugins with the same word share pointers
  const std::string& path() const { return path_; }
  const std::vector<AttentionRow>& rows() const { return rows_; }
  // Index of the row in the plugin's own table, or -1.
  int RowIndex(std::string_view row_name) const;
  // Of tensors between ops: the type with which the plugin is fastest.
  DType activations() const { return static_cast<DType>(table_->activations); }
  ashlar_probe Probe() const;
  const ashlar_plugin& table() const { return *table_; }

 private:
  Plugin() = default;
  std::string path_;
  const ashlar_plugin* table_ = nullptr;
  std::vector<AttentionRow> rows_;
};

struct PluginScan {
  std::vector<const Plugin*> plugins;  // sorted by name
  Problems refused;  // files that look like plugins and are not usable, each with the reason
};
// Loads every libashlar_*.so in `directory`. Never searches the working directory.
PluginScan LoadPlugins(const std::string& directory);
// Where plugins stand beside the running executable: ../lib/ashlar.
std::string DefaultPluginDirectory();

class Device;

// Owned device memory, zeroed at creation.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  friend class Device;
  const Device* device_ = nullptr;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

// A matrix, or a stack of them, as the plugin keeps it.
class Weight {
 public:
  Weight() = default;
  Weight(Weight&& other) noexcept;
  Weight& operator=(Weight&& other) noexcept;
  ~Weight();
  bool empty() const { return weight_ == nullptr; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }

 private:
  friend class Device;
  const Device* device_ = nullptr;
  ashlar_weight* weight_ = nullptr;
  int64_t rows_ = 0, cols_ = 0;
};

// Host memory that a stream's copies need not wait for. Plain memory on plugins that run at once.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;
  ~HostBuffer();
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  int64_t bytes() const { return bytes_; }

 private:
  friend class Device;
  const Device* device_ = nullptr;  // null when `plain_` owns the memory
  std::vector<std::byte> plain_;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

// A mark on the device's stream.
class Mark {
 public:
  Mark() = default;
  Mark(Mark&& other) noexcept;
  Mark& operator=(Mark&& other) noexcept;
  ~Mark();

 private:
  friend class Device;
  const Device* device_ = nullptr;
  ashlar_event* event_ = nullptr;  // null on plugins that run at once
};

// Ops recorded once, launched as one.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();

 private:
  friend class Device;
  const Device* device_ = nullptr;
  ashlar_graph* graph_ = nullptr;
};

// A product with what stands around it: out = residual + act(norm(x) * weight^T + bias). An empty
// tensor leaves its part out; gated excludes bias and residual.
struct Projection {
  Tensor out, x;
  const Weight* weight = nullptr;
  Tensor bias = {}, norm = {}, residual = {};
  float eps = 0;
  bool gated = false;
  ashlar_activation activation = ASHLAR_SILU;
};

// One decoder layer of a step, by its ops in the order in which they run.
struct LayerOps {
  Projection qkv;
  ashlar_qkv_prepare prepare{};
  int row = 0;  // of the plugin's table, which carries out the attention
  ashlar_attention attention{};
  Projection output, gate_up, down;
};

struct WeightPart {
  DType dtype;
  int64_t rows;
  std::span<const std::byte> bytes;  // host memory; outlives the weight when WeightBytes() is 0
};

struct DeviceOptions {
  int index = 0;
  int threads = 0;  // host plugins: 0 is all that the process may use
  bool invariant = false;
};

class Device {
 public:
  static Result<std::unique_ptr<Device>> Open(const Plugin& plugin, const DeviceOptions& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Plugin& plugin() const { return plugin_; }

  Result<Buffer> Alloc(int64_t bytes) const;
  Status CopyIn(void* to, std::span<const std::byte> from) const;
  Status CopyOut(std::span<std::byte> to, const void* from) const;
  Status Sync() const;

  Result<HostBuffer> AllocHost(int64_t bytes) const;
  Result<Mark> CreateMark() const;
  Status Record(const Mark& mark) const;
  // Returns when the device has passed the mark's last Record.
  Status Wait(const Mark& mark) const;
  // Whether Capture can be called. `ops` runs once and only records: pointers and shapes are kept,
  // nothing is computed. A failure inside leaves no graph.
  bool has_graphs() const { return plugin_.table().graph_begin != nullptr; }
  // Without marks a step has run when it is started.
  bool has_marks() const { return plugin_.table().event_create != nullptr; }
  Result<Graph> Capture(const std::function<Status()>& ops) const;
  Status Launch(const Graph& graph) const;

  // Bytes that the plugin would own for such a weight; 0 when it reads the source in place. `fp8`:
  // float parts are kept as E4M3 with a scale a row; plugins without such products refuse it.
  int64_t WeightBytes(std::span<const WeightPart> parts, int64_t cols, bool gathered,
                      bool fp8 = false) const;
  Result<Weight> CreateWeight(std::span<const WeightPart> parts, int64_t cols, bool gathered,
                              bool fp8 = false) const;

  Status Embed(const Tensor& out, const Weight& weight, const int32_t* ids, float scale) const;
  Status Gather(const Tensor& out, const Tensor& x, const int32_t* rows) const;
  Status RmsNorm(const Tensor& out, const Tensor& x, const Tensor& weight, float eps) const;
  Status Matmul(const Tensor& out, const Tensor& x, const Weight& weight,
                const Tensor& bias = {}) const;
  Status QkvPrepare(const ashlar_qkv_prepare& args) const;
  Status Attention(int row, const ashlar_attention& args) const;
  Status GatedActivation(const Tensor& out, const Tensor& gate_up,
                         ashlar_activation activation) const;
  Status Add(const Tensor& sum, const Tensor& x) const;
  // Whether Project can be called; the ops of its parts give the same.
  bool has_project() const { return plugin_.table().project != nullptr; }
  Status Project(const Projection& args) const;
  // Whether Layers can be called.
  bool has_layers() const { return plugin_.table().layers != nullptr; }
  // Layers of a step in which each sequence has one token, as one op; false when the plugin leaves
  // them to the ops of each, and nothing was done. Each is made by LayerToC.
  Result<bool> Layers(std::span<const ashlar_layer> layers) const;
  ashlar_layer LayerToC(const LayerOps& ops) const;
  // Whether Sample and ResolveIds can be called.
  bool has_sample() const {
    return plugin_.table().sample != nullptr && plugin_.table().resolve_ids != nullptr;
  }
  Status Sample(const Tensor& logits, const ashlar_draw* draws, int32_t* ids) const;
  Status ResolveIds(int32_t* ids, const int32_t* from, int count) const;
  Status CopyBlocks(void* base, std::span<const int64_t> from_to_pairs, int64_t bytes) const;
  int64_t RowLaunches(int row) const;

 private:
  friend class Buffer;
  friend class Mark;
  friend class Graph;
  friend class HostBuffer;
  friend class Weight;
  explicit Device(const Plugin& plugin) : plugin_(plugin) {}
  static ashlar_projection ProjectionToC(const Projection& projection);
  Status Checked(int code, std::string_view op) const;
  void CheckRow(int row) const;

  const Plugin& plugin_;
  ashlar_device* device_ = nullptr;
  ashlar_stream* stream_ = nullptr;
};

// The C view of a tensor, for the two argument structs that ops take whole.
ashlar_tensor ToC(const Tensor& tensor);

}  // namespace ashlar
