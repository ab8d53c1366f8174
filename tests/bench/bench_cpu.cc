// Speed of the cpu plugin's ops, each beside the read bandwidth measured in the same run.
//
//   bench_cpu op --type q8_0 --rows 3072 --cols 1024 --m 1,4,16,256 [--threads N]
//   bench_cpu model --shape qwen3-0.6b --type q8_0 [--prompt 256] [--context 64] [--threads N]
//   ... --type bf16,q8_0: one after another
//   ... --level avx512-bf16,amx: each type at these levels, one after another; else the best one
//   ... --clock own: with --threads 1, counts only the time that the thread ran
//
// `op` prints GB/s of packed weight and GOP/s (two operations a product) of one matmul; the weight
// is repeated until it exceeds every cache. `model` runs the ops of a whole step of that shape,
// with random weights, and prints tokens a second for decode and for one prompt.
#include "bench_cpu_model.h"
#include "level.h"

namespace ashlar::cpu {
namespace {

struct Options {
  std::string mode, shape = "qwen3-0.6b";
  std::vector<std::string> types = {"q8_0"};
  int64_t rows = 3072, cols = 1024, prompt = 256, context = 64;
  std::vector<int64_t> m = {1, 4, 16, 256};
  int64_t megabytes = 200;  // of copies of the weight
  int threads = 0;
  std::vector<CpuLevel> levels = {BestLevel()};
  double seconds = 1.0;
};

void BenchOp(ashlar_device& device, const Options& o, const TypeName& type) {
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
    printf("%-5s %-12s %6ld x %6ld  m %4ld  %7.2f GB/s  %8.1f GOP/s  (read %.1f GB/s)\n", type.name,
           device.kernels.name, (long)o.rows, (long)o.cols, (long)m, one * copies / time / 1e9,
           2 * products / time / 1e9, bandwidth);
    fflush(stdout);
  }
}

void BenchModel(ashlar_device& device, const Options& o, const TypeName& type) {
  for (const Shape& shape : kShapes) {
    if (o.shape != shape.name) continue;
    Model model(device, shape, type, std::max<int64_t>(o.prompt, 1), o.context + 1);
    const double before = ReadBandwidth(device);
    const double decode = Median(o.seconds, [&] { model.Step(1, o.context); });
    const double prefill = o.prompt > 0 ? Median(o.seconds, [&] { model.Step(o.prompt, 0); }) : 0;
    const double after = ReadBandwidth(device);
    printf(
        "%s %s %s threads %d: packed in %.2f s; decode %.1f tok/s (%.1f GB/s); prompt %ld: %.0f "
        "tok/s; read %.1f, %.1f GB/s\n",
        shape.name, type.name, device.kernels.name, device.pool.threads(), model.pack_seconds(),
        1 / decode, model.bytes() / decode / 1e9, (long)o.prompt,
        prefill > 0 ? o.prompt / prefill : 0.0, before, after);
    return;
  }
  fprintf(stderr, "unknown shape %s\n", o.shape.c_str());
  exit(2);
}

// The parts of "a,b,c", each through convert().
template <typename Convert>
auto List(const std::string& text, Convert convert) {
  std::vector<decltype(convert(text))> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(convert(text.substr(at, comma - at)));
    at = comma + 1;
  }
  return parts;
}

CpuLevel LevelNamed(const std::string& name) {
  for (int level = 0; level < kCpuLevelCount; ++level)
    if (Supported((CpuLevel)level) && name == KernelsFor((CpuLevel)level).name)
      return (CpuLevel)level;
  fprintf(stderr, "this CPU has no level %s\n", name.c_str());
  exit(2);
}

Options Parse(int argc, char** argv) {
  Options o;
  if (argc > 1) o.mode = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--type") {
      o.types = List(value, [](const std::string& name) { return name; });
    } else if (key == "--shape") {
      o.shape = value;
    } else if (key == "--rows") {
      o.rows = std::stol(value);
    } else if (key == "--cols") {
      o.cols = std::stol(value);
    } else if (key == "--m") {
      o.m = List(value, [](const std::string& m) { return int64_t{std::stol(m)}; });
    } else if (key == "--prompt") {
      o.prompt = std::stol(value);
    } else if (key == "--context") {
      o.context = std::stol(value);
    } else if (key == "--threads") {
      o.threads = std::stoi(value);
    } else if (key == "--seconds") {
      o.seconds = std::stod(value);
    } else if (key == "--megabytes") {
      o.megabytes = std::stol(value);
    } else if (key == "--level") {
      o.levels = List(value, LevelNamed);
    } else if (key == "--clock") {
      own_time_only = value == "own";
    } else {
      fprintf(stderr, "unknown option %s\n", key.c_str());
      exit(2);
    }
  }
  return o;
}

}  // namespace
}  // namespace ashlar::cpu

int main(int argc, char** argv) {
  using namespace ashlar::cpu;
  const Options options = Parse(argc, argv);
  if (options.mode != "op" && options.mode != "model") {
    fprintf(stderr, "bench_cpu op|model [--key value]...\n");
    return 2;
  }
  for (const std::string& type : options.types)
    for (CpuLevel level : options.levels) {
      ashlar_device device(KernelsFor(level), options.threads);
      (options.mode == "op" ? BenchOp : BenchModel)(device, options, Type(type));
    }
}
