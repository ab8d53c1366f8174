#include "probe/kfd.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "probe/amd_models.h"

namespace ashlar {
namespace {

constexpr size_t kPropertyLines = 256;  // the kernel writes about 40
constexpr size_t kMemoryBanks = 16;     // and has at most 2
constexpr int64_t kAnyBytes = int64_t{1} << 60;

// Lines "key value" of the kernel. The first of a key counts.
class Properties {
 public:
  explicit Properties(std::string text) : text_(std::move(text)) {
    size_t read = 0;
    for (std::string_view line : Lines(text_)) {
      if (++read > kPropertyLines) break;
      std::vector<std::string_view> words = Words(line);
      if (words.size() == 2) values_.emplace(words[0], words[1]);
    }
  }
  Properties(const Properties&) = delete;
  Properties& operator=(const Properties&) = delete;

  bool empty() const { return values_.empty(); }
  // 0 when it is missing or no number that fits.
  int64_t Number(std::string_view key) const { return ParseNumber(Word(key)).value_or(0); }
  // Digits of a number that needs all 64 bits; "" when it is missing, 0 or none.
  std::string Digits(std::string_view key) const {
    std::string_view word = Word(key);
    const bool digits = word.find_first_not_of("0123456789") == word.npos && word.size() <= 20;
    return digits && word.find_first_not_of('0') != word.npos ? std::string(word) : "";
  }

 private:
  std::string_view Word(std::string_view key) const {
    auto found = values_.find(key);
    return found == values_.end() ? std::string_view() : found->second;
  }

  std::string text_;
  std::map<std::string_view, std::string_view> values_;
};

struct Memory {
  int64_t bytes = 0;
  std::optional<int64_t> used;
};

// Banks of local memory: all that the host can reach (type 1), and the rest (type 2).
Memory ReadBanks(const RootFiles& files, const std::string& node) {
  Memory memory;
  const std::string at = fmt::format("{}/{}/mem_banks", kKfdNodes, node);
  std::vector<std::string> banks = files.List(at);
  banks.resize(std::min(banks.size(), kMemoryBanks));
  for (const std::string& bank : banks) {
    const Properties properties(files.Read(fmt::format("{}/{}/properties", at, bank)).value_or(""));
    const int64_t heap = properties.Number("heap_type");
    const int64_t bytes = properties.Number("size_in_bytes");
    if ((heap != 1 && heap != 2) || bytes > kAnyBytes - memory.bytes) continue;
    memory.bytes += bytes;
    if (auto used = files.ReadNumber(fmt::format("{}/{}/used_memory", at, bank));
        used && *used <= kAnyBytes)
      memory.used = std::min(memory.used.value_or(0) + *used, kAnyBytes);
  }
  return memory;
}

std::string PciDirectory(const std::string& pci) { return "/sys/bus/pci/devices/" + pci; }

// What belongs to the whole card when it is split, by its first function.
std::string PciAddress(const Properties& properties, bool split) {
  const int64_t domain = properties.Number("domain"), location = properties.Number("location_id");
  if (domain > 0xffff'ffff || location > 0xffff) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", domain, location >> 8, location >> 3 & 31,
                     split ? 0 : location & 7);
}

// Modes are named by how many dies a partition has. Its number stands in the function bits.
std::string PartitionText(const RootFiles& files, const Properties& properties,
                          const std::string& pci) {
  constexpr const char* kModes[] = {"", "CPX ", "DPX ", "TPX ", "QPX "};
  const int64_t dies = properties.Number("num_xcc");
  std::string text = fmt::format("{}partition {}", dies <= 4 ? kModes[dies] : "",
                                 properties.Number("location_id") & 7);
  std::string memory = files.ReadWord(PciDirectory(pci) + "/current_memory_partition").value_or("");
  return memory.empty() ? text : fmt::format("{}, {}", text, PlainText(memory));
}

std::string Product(const RootFiles& files, const Properties& properties, const std::string& pci) {
  std::string name = files.ReadWord(PciDirectory(pci) + "/product_name").value_or("");
  if (!name.empty()) return PlainText(name);
  const AmdModel* model = FindAmdModel(properties.Number("device_id"));
  return model == nullptr ? "AMD GPU" : std::string(model->product);
}

std::optional<Capability> IsaOf(const Properties& properties) {
  int64_t version = properties.Number("gfx_target_version");
  const AmdModel* model = FindAmdModel(properties.Number("device_id"));
  if (version == 0 && model != nullptr) version = model->gfx_target_version;
  return GfxCapability(version);
}

KfdGpu ReadGpu(const RootFiles& files, const std::string& node, const Properties& properties,
               bool split) {
  KfdGpu gpu;
  gpu.node = node;
  gpu.capability = IsaOf(properties);
  gpu.pci = PciAddress(properties, split);
  gpu.product = Product(files, properties, gpu.pci);
  if (split) gpu.partition = PartitionText(files, properties, gpu.pci);
  // All GPUs of a hive are joined to each other.
  if (std::string hive = properties.Digits("hive_id"); !hive.empty()) gpu.link = "xgmi:" + hive;
  gpu.render_minor = properties.Number("drm_render_minor");
  const int64_t units =
      properties.Number("simd_count") / std::max<int64_t>(properties.Number("simd_per_cu"), 1);
  gpu.compute_units = units <= 65'536 ? static_cast<int>(units) : 0;
  Memory memory = ReadBanks(files, node);
  if (memory.bytes == 0 && !split) {
    memory.bytes = files.ReadNumber(PciDirectory(gpu.pci) + "/mem_info_vram_total").value_or(0);
    memory.used = files.ReadNumber(PciDirectory(gpu.pci) + "/mem_info_vram_used");
  }
  gpu.memory_bytes = memory.bytes <= kAnyBytes ? memory.bytes : 0;
  gpu.used_bytes = memory.used;
  return gpu;
}

// Names that are numbers, in the order of the numbers: "9" before "10".
std::vector<std::string> NodesInOrder(const RootFiles& files) {
  std::vector<std::string> nodes = files.List(kKfdNodes);
  std::erase_if(nodes, [](const std::string& name) { return !ParseNumber(name); });
  std::stable_sort(nodes.begin(), nodes.end(), [](const std::string& a, const std::string& b) {
    return *ParseNumber(a) < *ParseNumber(b);
  });
  return nodes;
}

}  // namespace

KfdTopology ReadKfdTopology(const RootFiles& files) {
  KfdTopology topology;
  topology.present = files.Exists(kKfdNodes);
  struct Node {
    std::string name;
    std::unique_ptr<Properties> properties;
  };
  std::vector<Node> gpus;
  std::map<std::string, int> on_card;  // nodes with one unique_id are partitions of one card
  for (std::string& node : NodesInOrder(files)) {
    std::optional<std::string> text = files.Read(fmt::format("{}/{}/properties", kKfdNodes, node));
    if (!text || Trim(*text).empty()) {
      ++topology.hidden;
      continue;
    }
    auto properties = std::make_unique<Properties>(*std::move(text));
    if (properties->Number("simd_count") == 0) continue;
    ++on_card[properties->Digits("unique_id")];
    gpus.push_back({std::move(node), std::move(properties)});
  }
  for (const Node& gpu : gpus) {
    const std::string card = gpu.properties->Digits("unique_id");
    const bool split = !card.empty() && on_card[card] > 1;
    topology.gpus.push_back(ReadGpu(files, gpu.name, *gpu.properties, split));
  }
  return topology;
}

std::string AmdFault(const RootFiles& files, const std::string& pci) {
  const std::string at = PciDirectory(pci);
  const std::string errors = files.Read(at + "/ras/umc_err_count").value_or("");
  for (std::string_view line : Lines(errors)) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() == 2 && words[0] == "ue:" && ParseNumber(words[1]).value_or(0) > 0)
      return fmt::format("{} uncorrectable memory errors", words[1]);
  }
  // "address : size : R", P or F: retired, pending, not possible.
  const std::string pages = files.Read(at + "/ras/gpu_vram_bad_pages").value_or("");
  for (std::string_view line : Lines(pages)) {
    if (Trim(line).ends_with(": P")) return "memory pages wait to be retired";
  }
  return "";
}

}  // namespace ashlar
