// Speed of the cpu plugin's ops, each beside the read bandwidth measured in the same run.
//
//   bench_cpu op --type q8_0 --rows 3072 --cols 1024 --m 1,4,16,256 [--threads N] [--level NAME]
//   bench_cpu model --shape qwen3-0.6b --type q8_0 [--prompt 256] [--context 64] [--threads N]
//   ... --clock own: with --threads 1, counts only the time that the thread ran
//
// `op` prints GB/s of packed weight and GOP/s (two operations a product) of one matmul; the weight
// is repeated until it exceeds every cache. `model` runs the ops of a whole step of that shape,
// with random weights, and prints tokens a second for decode and for one prompt.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "level.h"
#include "ops.h"

namespace ashlar::cpu {
namespace {

// With one thread, the time that it ran: comparable also when others use the machine.
bool own_time_only = false;

double Seconds() {
  if (own_time_only) {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Options {
  std::string mode, shape = "qwen3-0.6b", type = "q8_0";
  int64_t rows = 3072, cols = 1024, prompt = 256, context = 64;
  std::vector<int64_t> m = {1, 4, 16, 256};
  int64_t megabytes = 200;  // of copies of the weight
  int threads = 0;
  CpuLevel level = BestLevel();
  double seconds = 1.0;
};

struct TypeName {
  const char* name;
  ashlar_dtype dtype;
  int columns, bytes;
};
constexpr TypeName kTypes[] = {{"f32", ASHLAR_F32, 1, 4},       {"f16", ASHLAR_F16, 1, 2},
                               {"bf16", ASHLAR_BF16, 1, 2},     {"q8_0", ASHLAR_Q8_0, 32, 34},
                               {"q4_0", ASHLAR_Q4_0, 32, 18},   {"q4_1", ASHLAR_Q4_1, 32, 20},
                               {"q5_0", ASHLAR_Q5_0, 32, 22},   {"q5_1", ASHLAR_Q5_1, 32, 24},
                               {"q4_k", ASHLAR_Q4_K, 256, 144}, {"q5_k", ASHLAR_Q5_K, 256, 176},
                               {"q6_k", ASHLAR_Q6_K, 256, 210}};

const TypeName& Type(const std::string& name) {
  for (const TypeName& type : kTypes)
    if (name == type.name) return type;
  fprintf(stderr, "unknown type %s\n", name.c_str());
  exit(2);
}

// Bytes of a random weight whose 16-bit fields are small normal numbers in every format.
std::vector<uint8_t> RandomSource(const TypeName& type, int64_t rows, int64_t cols) {
  std::vector<uint8_t> bytes(rows * (cols / type.columns) * type.bytes);
  // Bits that stay: f16 fields below 2^-3; f32 and bf16 between 2^-63 and 2; none subnormal.
  const uint64_t keep = type.columns > 1 || type.dtype == ASHLAR_F16 ? 0x2fff2fff2fff2fffu
                        : type.dtype == ASHLAR_F32                   ? 0x9fffffff9fffffffu
                                                                     : 0x9fff9fff9fff9fffu;
  const uint64_t set = type.columns > 1 || type.dtype == ASHLAR_F16 ? 0x0400040004000400u
                       : type.dtype == ASHLAR_F32                   ? 0x2000000020000000u
                                                                    : 0x2000200020002000u;
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const uint64_t word = (state & keep) | set;
    memcpy(bytes.data() + i, &word, 8);
  }
  return bytes;
}

struct WeightDeleter {
  void operator()(ashlar_weight* weight) const { delete weight; }
};
using WeightPtr = std::unique_ptr<ashlar_weight, WeightDeleter>;

struct Matrix {
  std::vector<std::vector<uint8_t>> sources;
  WeightPtr weight;
  int64_t bytes = 0;
  double seconds = 0;  // to pack
};

Matrix MakeMatrix(ashlar_device& device, const TypeName& type, std::vector<int64_t> rows,
                  int64_t cols) {
  Matrix matrix;
  ashlar_weight_desc desc{};
  desc.parts = static_cast<int32_t>(rows.size());
  desc.cols = cols;
  const void* pointers[ASHLAR_MAX_PARTS] = {};
  for (size_t i = 0; i < rows.size(); ++i) {
    desc.dtype[i] = type.dtype;
    desc.rows[i] = rows[i];
    matrix.sources.push_back(RandomSource(type, rows[i], cols));
    matrix.bytes += matrix.sources.back().size();
    pointers[i] = matrix.sources.back().data();
  }
  ashlar_weight* weight = nullptr;
  const double start = Seconds();
  if (CreateWeight(device, desc, pointers, &weight) != ASHLAR_OK) {
    fprintf(stderr, "%s\n", LastError());
    exit(1);
  }
  matrix.seconds = Seconds() - start;
  matrix.weight.reset(weight);
  if (PackedBytes(desc) > 0) matrix.sources.clear();
  return matrix;
}

struct Floats {
  std::vector<float> data;
  int64_t cols;
  Floats(int64_t rows, int64_t columns) : data(rows * columns), cols(columns) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& v : data) v = normal(random);
  }
  ashlar_tensor View(int64_t rows) {
    return {data.data(), ASHLAR_F32, 2, {rows, cols}, {cols * 4, 4}};
  }
  ashlar_tensor Vector() { return {data.data(), ASHLAR_F32, 1, {cols}, {4}}; }
  ashlar_tensor Heads(int64_t rows, int64_t heads) {
    const int64_t dim = cols / heads;
    return {data.data(), ASHLAR_F32, 3, {rows, heads, dim}, {cols * 4, dim * 4, 4}};
  }
};

void Must(int code) {
  if (code == ASHLAR_OK) return;
  fprintf(stderr, "%s\n", LastError());
  exit(1);
}

// Read bandwidth in GB/s of all the device's threads over a buffer that no cache holds; best of 5.
double ReadBandwidth(ashlar_device& device) {
  constexpr int64_t kBytes = int64_t{512} << 20, kChunk = 1 << 20;
  static Pages pages(kBytes);
  memset(pages.data(), 1, kBytes);
  double best = 0;
  std::vector<uint64_t> sums(device.pool.threads() * 8);
  for (int run = 0; run < 5; ++run) {
    const double start = Seconds();
    device.pool.Run(kBytes / kChunk, [&](int64_t chunk, int thread) {
      const auto* p =
          reinterpret_cast<const uint64_t*>(static_cast<char*>(pages.data()) + chunk * kChunk);
      uint64_t a = 0, b = 0, c = 0, d = 0;
      for (int64_t i = 0; i < kChunk / 8; i += 8) {  // one load a line is enough to fetch it
        __builtin_prefetch(p + i + 512);
        a += p[i], b += p[i + 2], c += p[i + 4], d += p[i + 6];
      }
      sums[thread * 8] += a + b + c + d;
    });
    best = std::max(best, kBytes / (Seconds() - start) / 1e9);
  }
  return best;
}

// Calls run() until `seconds` have passed, at least 3 times; the median of its times.
template <typename Run>
double Median(double seconds, Run run) {
  run();
  std::vector<double> times;
  const double end = Seconds() + seconds;
  while (times.size() < 3 || Seconds() < end) {
    const double start = Seconds();
    run();
    times.push_back(Seconds() - start);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

void BenchOp(ashlar_device& device, const Options& o) {
  const TypeName& type = Type(o.type);
  const int64_t one = o.rows * (o.cols / type.columns) * type.bytes;
  const int copies = static_cast<int>(std::max<int64_t>(1, (o.megabytes << 20) / one));
  std::vector<Matrix> weights;
  for (int i = 0; i < copies; ++i) weights.push_back(MakeMatrix(device, type, {o.rows}, o.cols));
  for (int64_t m : o.m) {
    Floats x(m, o.cols), out(m, o.rows);
    const double bandwidth = ReadBandwidth(device);
    const double time = Median(o.seconds, [&] {
      for (Matrix& w : weights) Must(Matmul(device, out.View(m), x.View(m), *w.weight, {}));
    });
    const double products = 1.0 * m * o.rows * o.cols * copies;
    printf("%-5s %6ld x %6ld  m %4ld  %7.2f GB/s  %8.1f GOP/s  (read %.1f GB/s)\n", type.name,
           (long)o.rows, (long)o.cols, (long)m, one * copies / time / 1e9,
           2 * products / time / 1e9, bandwidth);
    fflush(stdout);
  }
}

struct Shape {
  const char* name;
  int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  bool qk_norm;
};
constexpr Shape kShapes[] = {{"qwen3-0.6b", 28, 1024, 16, 8, 128, 3072, 151936, true},
                             {"smollm2-135m", 30, 576, 9, 3, 64, 1536, 49152, false}};

struct Layer {
  Matrix qkv, output, gate_up, down;
};

// The ops of a dense decoder in the order of a step, for one sequence.
class Model {
 public:
  Model(ashlar_device& device, const Shape& shape, const TypeName& type, int64_t tokens,
        int64_t context)
      : device_(device),
        s_(shape),
        x_(tokens, s_.hidden),
        normed_(tokens, s_.hidden),
        qkv_(tokens, (s_.heads + 2 * s_.kv_heads) * s_.head_dim),
        q_(tokens, s_.heads * s_.head_dim),
        attended_(tokens, s_.heads * s_.head_dim),
        gate_up_(tokens, 2 * s_.ffn),
        activated_(tokens, s_.ffn),
        projected_(tokens, s_.hidden),
        logits_(1, s_.vocab),
        norm_(1, s_.hidden),
        head_norm_(1, s_.head_dim),
        inv_freq_(s_.head_dim / 2) {
    for (int64_t i = 0; i < s_.layers; ++i) {
      layers_.push_back({MakeMatrix(device, type,
                                    {s_.heads * s_.head_dim, s_.kv_heads * s_.head_dim,
                                     s_.kv_heads * s_.head_dim},
                                    s_.hidden),
                         MakeMatrix(device, type, {s_.hidden}, s_.heads * s_.head_dim),
                         MakeMatrix(device, type, {s_.ffn, s_.ffn}, s_.hidden),
                         MakeMatrix(device, type, {s_.hidden}, s_.ffn)});
      bytes_ += layers_[i].qkv.bytes + layers_[i].output.bytes + layers_[i].gate_up.bytes +
                layers_[i].down.bytes;
    }
    head_ = MakeMatrix(device, type, {s_.vocab}, s_.hidden);
    bytes_ += head_.bytes;
    pack_seconds_ = head_.seconds;
    for (const Layer& layer : layers_)
      for (const Matrix* m : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down})
        pack_seconds_ += m->seconds;
    for (int64_t i = 0; i < s_.head_dim / 2; ++i)
      inv_freq_[i] = std::pow(1e6, -2.0 * i / s_.head_dim);
    blocks_ = (std::max(tokens, context) + kBlock) / kBlock + 1;
    kv_ = Pages(s_.layers * blocks_ * s_.kv_heads * kBlock * 2 * s_.head_dim * 2);
    memset(kv_.data(), 0x11, kv_.bytes());  // small normal numbers, not the shared page of zeros
    for (int64_t i = 0; i < blocks_; ++i) table_.push_back(static_cast<int32_t>(i));
  }

  // `tokens` new tokens behind `past` ones; logits of the last.
  void Step(int64_t tokens, int64_t past) {
    positions_.resize(tokens);
    slots_.resize(tokens);
    for (int64_t i = 0; i < tokens; ++i) positions_[i] = slots_[i] = past + i;
    const int32_t ids[] = {1};
    Must(Embed(device_, x_.View(1), *head_.weight, ids, 1.0f));
    Must(RmsNorm(device_, normed_.View(tokens), x_.View(tokens), norm_.Vector(), 1e-6f));
    for (int64_t i = 0; i < s_.layers; ++i) RunLayer(i, tokens, past);
    const int32_t last[] = {static_cast<int32_t>(tokens - 1)};
    Must(Gather(device_, projected_.View(1), normed_.View(tokens), last));
    Must(Matmul(device_, logits_.View(1), projected_.View(1), *head_.weight, {}));
  }

  int64_t bytes() const { return bytes_; }
  double pack_seconds() const { return pack_seconds_; }

 private:
  static constexpr int32_t kBlock = 32;

  void RunLayer(int64_t i, int64_t tokens, int64_t past) {
    const Layer& layer = layers_[i];
    const int64_t head_bytes = kBlock * 2 * s_.head_dim * 2;
    const ashlar_kv_view kv{.base = static_cast<uint16_t*>(kv_.data()) +
                                    i * blocks_ * s_.kv_heads * kBlock * 2 * s_.head_dim,
                            .block_stride = s_.kv_heads * head_bytes,
                            .head_stride = head_bytes,
                            .token_stride = 2 * s_.head_dim * 2,
                            .blocks = blocks_,
                            .dtype = ASHLAR_F16,
                            .block_tokens = kBlock,
                            .kv_heads = static_cast<int32_t>(s_.kv_heads),
                            .head_dim = static_cast<int32_t>(s_.head_dim),
                            .head_dim_v = static_cast<int32_t>(s_.head_dim)};
    Must(Matmul(device_, qkv_.View(tokens), normed_.View(tokens), *layer.qkv.weight, {}));
    ashlar_tensor head_norm = s_.qk_norm ? head_norm_.Vector() : ashlar_tensor{};
    Must(QkvPrepare(device_, {.qkv = qkv_.View(tokens),
                              .q_out = q_.Heads(tokens, s_.heads),
                              .q_norm = head_norm,
                              .k_norm = head_norm,
                              .eps = 1e-6f,
                              .positions = positions_.data(),
                              .inv_freq = inv_freq_.data(),
                              .rotary_dim = static_cast<int32_t>(s_.head_dim),
                              .rope_scale = 1.0f,
                              .rope_style = ASHLAR_ROPE_HALF,
                              .kv = kv,
                              .slots = slots_.data()}));
    const int32_t start[] = {0, static_cast<int32_t>(tokens)};
    const int32_t context[] = {static_cast<int32_t>(past + tokens)};
    Must(Attention(device_, {.q = q_.Heads(tokens, s_.heads),
                             .out = attended_.Heads(tokens, s_.heads),
                             .kv = kv,
                             .block_table = table_.data(),
                             .table_stride = blocks_,
                             .query_start = start,
                             .context = context,
                             .sequences = 1,
                             .max_query = start[1],
                             .max_context = context[0],
                             .scale = 0.088f,
                             .window = 0}));
    Must(
        Matmul(device_, projected_.View(tokens), attended_.View(tokens), *layer.output.weight, {}));
    Must(AddRmsNorm(device_, normed_.View(tokens), x_.View(tokens), projected_.View(tokens),
                    norm_.Vector(), 1e-6f));
    Must(Matmul(device_, gate_up_.View(tokens), normed_.View(tokens), *layer.gate_up.weight, {}));
    Must(GatedActivation(device_, activated_.View(tokens), gate_up_.View(tokens), ASHLAR_SILU));
    Must(Matmul(device_, projected_.View(tokens), activated_.View(tokens), *layer.down.weight, {}));
    Must(AddRmsNorm(device_, normed_.View(tokens), x_.View(tokens), projected_.View(tokens),
                    norm_.Vector(), 1e-6f));
  }

  ashlar_device& device_;
  const Shape& s_;
  Floats x_, normed_, qkv_, q_, attended_, gate_up_, activated_, projected_, logits_, norm_,
      head_norm_;
  std::vector<float> inv_freq_;
  std::vector<Layer> layers_;
  Matrix head_;
  Pages kv_;
  std::vector<int32_t> table_, positions_;
  std::vector<int64_t> slots_;
  int64_t blocks_ = 0, bytes_ = 0;
  double pack_seconds_ = 0;
};

void BenchModel(ashlar_device& device, const Options& o) {
  for (const Shape& shape : kShapes) {
    if (o.shape != shape.name) continue;
    Model model(device, shape, Type(o.type), std::max<int64_t>(o.prompt, 1), o.context + 1);
    const double before = ReadBandwidth(device);
    const double decode = Median(o.seconds, [&] { model.Step(1, o.context); });
    const double prefill = o.prompt > 0 ? Median(o.seconds, [&] { model.Step(o.prompt, 0); }) : 0;
    const double after = ReadBandwidth(device);
    printf(
        "%s %s %s threads %d: packed in %.2f s; decode %.1f tok/s (%.1f GB/s); prompt %ld: %.0f "
        "tok/s; read %.1f, %.1f GB/s\n",
        shape.name, o.type.c_str(), device.kernels.name, device.pool.threads(),
        model.pack_seconds(), 1 / decode, model.bytes() / decode / 1e9, (long)o.prompt,
        prefill > 0 ? o.prompt / prefill : 0.0, before, after);
    return;
  }
  fprintf(stderr, "unknown shape %s\n", o.shape.c_str());
  exit(2);
}

Options Parse(int argc, char** argv) {
  Options o;
  if (argc > 1) o.mode = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--type") o.type = value;
    if (key == "--shape") o.shape = value;
    if (key == "--rows") o.rows = std::stol(value);
    if (key == "--cols") o.cols = std::stol(value);
    if (key == "--prompt") o.prompt = std::stol(value);
    if (key == "--context") o.context = std::stol(value);
    if (key == "--threads") o.threads = std::stoi(value);
    if (key == "--seconds") o.seconds = std::stod(value);
    if (key == "--megabytes") o.megabytes = std::stol(value);
    if (key == "--clock") own_time_only = value == "own";
    if (key == "--m") {
      o.m.clear();
      for (size_t at = 0; at < value.size(); at = value.find(',', at), at += at < value.size())
        o.m.push_back(std::stol(value.substr(at)));
    }
    if (key == "--level")
      for (int level = 0; level < kCpuLevelCount; ++level)
        if (Supported((CpuLevel)level) && value == KernelsFor((CpuLevel)level).name)
          o.level = (CpuLevel)level;
  }
  return o;
}

}  // namespace
}  // namespace ashlar::cpu

int main(int argc, char** argv) {
  using namespace ashlar::cpu;
  const Options options = Parse(argc, argv);
  ashlar_device device(KernelsFor(options.level), options.threads);
  if (options.mode == "op") {
    BenchOp(device, options);
  } else if (options.mode == "model") {
    BenchModel(device, options);
  } else {
    fprintf(stderr, "bench_cpu op|model [--key value]...\n");
    return 2;
  }
}
