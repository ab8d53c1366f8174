#include "probe/cpu_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ashlar {
namespace {

// A set counts when every flag is there: kernels for it use them all.
struct IsaRow {
  CpuIsa bit;
  std::string_view name;
  std::array<std::string_view, 4> flags;
};
constexpr std::array<IsaRow, 6> kIsaRows = {{
    {kAvx2, "avx2", {"avx2", "fma", "f16c"}},
    {kAvx512, "avx512f", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}},
    {kAvx512Vnni, "avx512_vnni", {"avx512_vnni"}},
    {kAvx512Bf16, "avx512_bf16", {"avx512_bf16"}},
    {kAmx, "amx", {"amx_tile", "amx_int8", "amx_bf16"}},
    {kAvxVnni, "avx_vnni", {"avx_vnni"}},
}};

std::optional<int> ParseIndex(std::string_view text) {
  std::optional<int64_t> value = ParseNumber(text);
  if (!value || *value >= static_cast<int64_t>(CpuSet().size())) return std::nullopt;
  return static_cast<int>(*value);
}

// The value of the first line "key   : value" in /proc's style.
std::string_view Entry(std::string_view text, std::string_view key) {
  for (std::string_view line : Lines(text)) {
    size_t colon = line.find(':');
    if (colon != line.npos && Trim(line.substr(0, colon)) == key)
      return Trim(line.substr(colon + 1));
  }
  return {};
}

int CountProcessors(std::string_view cpuinfo) {
  std::vector<std::string_view> lines = Lines(cpuinfo);
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [](std::string_view line) {
    return line.starts_with("processor") && line.find(':') != line.npos;
  }));
}

// "48K", "2048K", "32M".
int64_t ParseCacheSize(std::string_view text) {
  if (text.empty()) return 0;
  int64_t unit = text.back() == 'K' ? 1 << 10 : text.back() == 'M' ? 1 << 20 : 1;
  std::optional<int64_t> count = ParseNumber(unit == 1 ? text : text.substr(0, text.size() - 1));
  return count && *count <= (int64_t{1} << 40) / unit ? *count * unit : 0;
}

CpuSet AllowedCpus(const RootFiles& files, std::string_view cpuinfo) {
  CpuSet allowed;
  allowed.set();
  auto restrict_to = [&allowed](const std::optional<CpuSet>& set) {
    if (set && (allowed & *set).any()) allowed &= *set;
  };
  restrict_to(ParseCpuList(files.ReadWord("/sys/devices/system/cpu/online").value_or("")));
  restrict_to(
      ParseCpuList(Entry(files.Read("/proc/self/status").value_or(""), "Cpus_allowed_list")));
  if (allowed.all()) {  // neither file could be read
    allowed.reset();
    int count = std::clamp(CountProcessors(cpuinfo), 1, static_cast<int>(allowed.size()));
    for (int i = 0; i < count; ++i) allowed.set(static_cast<size_t>(i));
  }
  return allowed;
}

void ReadCaches(const RootFiles& files, CpuFacts& facts) {
  size_t cpu = facts.allowed._Find_first();
  for (int index = 0; index < 10; ++index) {
    std::string at = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/", cpu, index);
    std::string type = files.ReadWord(at + "type").value_or("");
    int64_t bytes = ParseCacheSize(files.ReadWord(at + "size").value_or(""));
    if (type == "Instruction") continue;
    switch (files.ReadNumber(at + "level").value_or(0)) {
      case 1:
        facts.l1d_bytes = bytes;
        break;
      case 2:
        facts.l2_bytes = bytes;
        break;
      case 3:
        facts.l3_bytes = bytes;
        break;
    }
  }
}

}  // namespace

std::optional<CpuSet> ParseCpuList(std::string_view text) {
  CpuSet set;
  if (text.empty()) return std::nullopt;
  while (true) {
    size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    size_t dash = part.find('-');
    std::optional<int> first = ParseIndex(part.substr(0, std::min(dash, part.size())));
    std::optional<int> last = dash == part.npos ? first : ParseIndex(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (int i = *first; i <= *last; ++i) set.set(static_cast<size_t>(i));
    if (comma == text.size()) return set;
    text.remove_prefix(comma + 1);
  }
}

Capability CpuCapability(std::string_view flags) {
  Capability capability{.unit = CapabilityUnit::kCpu, .value = 0, .names = {}};
  std::vector<std::string_view> words = Words(flags);
  for (const IsaRow& row : kIsaRows) {
    bool all = std::all_of(row.flags.begin(), row.flags.end(), [&](std::string_view flag) {
      return flag.empty() || std::find(words.begin(), words.end(), flag) != words.end();
    });
    if (!all) continue;
    capability.value |= row.bit;
  }
  capability.names = IsaNames(capability.value);
  return capability;
}

std::vector<std::string> IsaNames(uint32_t bits) {
  std::vector<std::string> names;
  for (const IsaRow& row : kIsaRows) {
    if (bits & row.bit) names.emplace_back(row.name);
  }
  return names;
}

CpuFacts ReadCpuFacts(const RootFiles& files) {
  CpuFacts facts;
  std::string cpuinfo = files.Read("/proc/cpuinfo").value_or("");
  facts.product = PlainText(Entry(cpuinfo, "model name"));
  if (facts.product.empty()) facts.product = "unnamed CPU";
  facts.capability = CpuCapability(Entry(cpuinfo, "flags"));
  facts.allowed = AllowedCpus(files, cpuinfo);
  std::optional<CpuSet> nodes =
      ParseCpuList(files.ReadWord("/sys/devices/system/node/online").value_or(""));
  if (nodes) facts.numa_nodes = static_cast<int>(nodes->count());
  ReadCaches(files, facts);
  return facts;
}

}  // namespace ashlar
