#include "probe/cgroup.h"

#include <algorithm>

namespace ashlar {
namespace {

constexpr int64_t kUnlimited = int64_t{1} << 60;  // version 1 writes a huge number for "none"
constexpr size_t kMaxDepth = 64;

// mountinfo writes a space in a path as \040.
std::string DecodeOctal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7' ? text[at] - '0' : -1;
    };
    if (text[i] == '\\' && digit(i + 1) >= 0 && digit(i + 2) >= 0 && digit(i + 3) >= 0) {
      out += static_cast<char>(digit(i + 1) * 64 + digit(i + 2) * 8 + digit(i + 3));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string> SplitCommas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

bool Contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

template <class T>
void Lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

// A line of /proc/self/cgroup: "4:cpu,cpuacct:/path", in version 2 "0::/path".
struct Membership {
  std::vector<std::string> controllers;
  std::string path;
};

std::vector<Membership> ParseMemberships(std::string_view text) {
  std::vector<Membership> memberships;
  for (std::string_view line : Lines(text)) {
    size_t first = line.find(':');
    if (first == line.npos) continue;
    size_t second = line.find(':', first + 1);
    if (second == line.npos) continue;
    memberships.push_back({SplitCommas(line.substr(first + 1, second - first - 1)),
                           std::string(line.substr(second + 1))});
  }
  return memberships;
}

int64_t StatValue(std::string_view stat, std::string_view key) {
  for (std::string_view line : Lines(stat)) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() == 2 && words[0] == key) return ParseNumber(words[1]).value_or(0);
  }
  return 0;
}

void AddMemory(const RootFiles& files, const std::string& directory, bool unified,
               CgroupLimits& limits) {
  std::vector<std::string> names = unified ? std::vector<std::string>{"/memory.max", "/memory.high"}
                                           : std::vector<std::string>{"/memory.limit_in_bytes"};
  for (const std::string& name : names) {
    std::optional<int64_t> limit = files.ReadNumber(directory + name);
    if (!limit || *limit >= kUnlimited) continue;
    int64_t usage =
        files.ReadNumber(directory + (unified ? "/memory.current" : "/memory.usage_in_bytes"))
            .value_or(0);
    int64_t droppable = StatValue(files.Read(directory + "/memory.stat").value_or(""),
                                  unified ? "inactive_file" : "total_inactive_file");
    int64_t used = std::max<int64_t>(0, usage - droppable);
    Lower(limits.memory_bytes, *limit);
    Lower(limits.free_bytes, std::max<int64_t>(0, *limit - used));
  }
}

void AddQuota(std::optional<int64_t> quota, std::optional<int64_t> period, CgroupLimits& limits) {
  if (!quota || !period || *quota < 1 || *period < 1) return;
  Lower(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
}

void AddCpu(const RootFiles& files, const std::string& directory, bool unified,
            CgroupLimits& limits) {
  if (!unified) {
    AddQuota(files.ReadNumber(directory + "/cpu.cfs_quota_us"),
             files.ReadNumber(directory + "/cpu.cfs_period_us"), limits);
    return;
  }
  std::string text = files.Read(directory + "/cpu.max").value_or("");
  std::vector<std::string_view> words = Words(text);
  if (words.size() == 2) AddQuota(ParseNumber(words[0]), ParseNumber(words[1]), limits);
}

void AddCpuset(const RootFiles& files, const std::string& directory, CgroupLimits& limits) {
  for (const char* name : {"/cpuset.cpus.effective", "/cpuset.effective_cpus", "/cpuset.cpus"}) {
    std::optional<CpuSet> set = ParseCpuList(files.ReadWord(directory + name).value_or(""));
    if (!set) continue;
    if (!limits.cpuset)
      limits.cpuset = set;
    else if ((*limits.cpuset & *set).any())
      *limits.cpuset &= *set;
    return;
  }
}

}  // namespace

std::vector<CgroupMount> ParseCgroupMounts(std::string_view mountinfo) {
  std::vector<CgroupMount> mounts;
  for (std::string_view line : Lines(mountinfo)) {
    // "id parent major:minor root point options [tags...] - type source super-options"
    size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::vector<std::string_view> left = Words(line.substr(0, dash));
    std::vector<std::string_view> right = Words(line.substr(dash + 3));
    if (left.size() < 6 || right.size() < 3) continue;
    if (right[0] != "cgroup" && right[0] != "cgroup2") continue;
    CgroupMount mount{.unified = right[0] == "cgroup2",
                      .controllers = {},
                      .root = DecodeOctal(left[3]),
                      .point = DecodeOctal(left[4])};
    if (!mount.unified) mount.controllers = SplitCommas(right[2]);
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::vector<std::string> CgroupDirectories(const CgroupMount& mount, std::string_view path) {
  // Below the mount's root lies what is visible. A path outside of it (another namespace's, or the
  // host's) is judged by the mount's top alone, which is the container's own group then.
  std::string below;
  if (mount.root == "/") {
    below = path;
  } else if (path.starts_with(mount.root) &&
             (path.size() == mount.root.size() || path[mount.root.size()] == '/')) {
    below = path.substr(mount.root.size());
  }
  if (below == "/" || below.find("/..") != below.npos) below.clear();
  std::vector<std::string> directories;
  while (!below.empty() && directories.size() < kMaxDepth) {
    directories.push_back(mount.point + below);
    below.resize(below.rfind('/') == below.npos ? 0 : below.rfind('/'));
  }
  directories.push_back(mount.point);
  return directories;
}

CgroupLimits ReadCgroupLimits(const RootFiles& files) {
  CgroupLimits limits;
  std::vector<CgroupMount> mounts =
      ParseCgroupMounts(files.Read("/proc/self/mountinfo").value_or(""));
  for (const Membership& member : ParseMemberships(files.Read("/proc/self/cgroup").value_or(""))) {
    for (const CgroupMount& mount : mounts) {
      auto governs = [&](std::string_view controller) {
        return mount.unified ? member.controllers.empty()
                             : Contains(member.controllers, controller) &&
                                   Contains(mount.controllers, controller);
      };
      const bool memory = governs("memory"), cpu = governs("cpu"), cpuset = governs("cpuset");
      if (!memory && !cpu && !cpuset) continue;
      for (const std::string& directory : CgroupDirectories(mount, member.path)) {
        if (memory) AddMemory(files, directory, mount.unified, limits);
        if (cpu) AddCpu(files, directory, mount.unified, limits);
        if (cpuset) AddCpuset(files, directory, limits);
      }
    }
  }
  return limits;
}

}  // namespace ashlar
