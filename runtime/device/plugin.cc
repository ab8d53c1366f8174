#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "device/device.h"
#include "device/row_table.h"

namespace ashlar {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReinstall = "install plugin and runtime of one version";

struct Required {
  const char* name;
  bool present;
};

// Every pointer that the table must have; the optional ones are checked as sets.
std::vector<Required> RequiredPointers(const ashlar_plugin& t) {
  return {
      {"name", t.name != nullptr},
      {"memory", t.memory != nullptr},
      {"rows", t.rows != nullptr || t.row_count == 0},
      {"probe", t.probe != nullptr},
      {"last_error", t.last_error != nullptr},
      {"open", t.open != nullptr},
      {"close", t.close != nullptr},
      {"alloc", t.alloc != nullptr},
      {"release", t.release != nullptr},
      {"copy_in", t.copy_in != nullptr},
      {"copy_out", t.copy_out != nullptr},
      {"weight_bytes", t.weight_bytes != nullptr},
      {"weight_create", t.weight_create != nullptr},
      {"weight_destroy", t.weight_destroy != nullptr},
      {"embed", t.embed != nullptr},
      {"gather", t.gather != nullptr},
      {"rms_norm", t.rms_norm != nullptr},
      {"matmul", t.matmul != nullptr},
      {"qkv_prepare", t.qkv_prepare != nullptr},
      {"attention", t.attention != nullptr},
      {"gated_activation", t.gated_activation != nullptr},
      {"add", t.add != nullptr},
      {"copy_blocks", t.copy_blocks != nullptr},
      {"row_launches", t.row_launches != nullptr},
  };
}

// A set of optional pointers is there as a whole or not at all.
bool AllOrNone(std::initializer_list<bool> present) {
  const auto count = std::count(present.begin(), present.end(), true);
  return count == 0 || count == static_cast<std::ptrdiff_t>(present.size());
}

Problems CheckTable(const ashlar_plugin* table, const std::string& path) {
  const auto refuse = [&](std::string found, std::string allowed) {
    return Problems{{path, std::move(found), std::move(allowed), std::string(kReinstall)}};
  };
  if (table == nullptr) return refuse("its table is NULL", "");
  // abi and table_bytes come first in every version; nothing else is read before both agree.
  if (table->abi != ASHLAR_PLUGIN_ABI) {
    return refuse(fmt::format("plugin ABI {}", table->abi),
                  fmt::format("this runtime speaks ABI {}", ASHLAR_PLUGIN_ABI));
  }
  if (table->table_bytes < sizeof(ashlar_plugin)) {
    return refuse(fmt::format("a table of {} bytes", table->table_bytes),
                  fmt::format("this runtime needs {} bytes", sizeof(ashlar_plugin)));
  }
  std::string missing;
  for (const Required& pointer : RequiredPointers(*table)) {
    if (!pointer.present) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", pointer.name);
  }
  if (!missing.empty()) return refuse("missing from its table: " + missing, "");
  if (table->row_count < 0) return refuse(fmt::format("{} rows", table->row_count), "0 or more");
  if (!AllOrNone({table->stream_create != nullptr, table->stream_destroy != nullptr,
                  table->stream_sync != nullptr}) ||
      !AllOrNone({table->graph_begin != nullptr, table->graph_end != nullptr,
                  table->graph_launch != nullptr, table->graph_destroy != nullptr}) ||
      !AllOrNone({table->host_alloc != nullptr, table->host_release != nullptr,
                  table->event_create != nullptr, table->event_destroy != nullptr,
                  table->event_record != nullptr, table->event_wait != nullptr})) {
    return refuse("only some of the stream, graph or event functions", "all of a set or none");
  }
  return {};
}

Result<std::vector<AttentionRow>> ReadRows(const ashlar_plugin& table, const std::string& path) {
  std::vector<AttentionRow> rows;
  Problems problems;
  std::set<std::string> names;
  for (int32_t i = 0; i < table.row_count; ++i) {
    auto row = ReadRow(table.rows[i], path);
    if (!row.ok()) {
      problems.insert(problems.end(), row.problems().begin(), row.problems().end());
      continue;
    }
    if (row->platform != table.name) {
      problems.push_back({fmt::format("{} row {}", path, row->name),
                          fmt::format("platform {}", row->platform),
                          fmt::format("the plugin is named {}", table.name), "rebuild the plugin"});
    }
    if (!names.insert(row->name).second) {
      problems.push_back({fmt::format("{} row {}", path, row->name), "the name stands twice",
                          "names are unique", "rebuild the plugin"});
    }
    rows.push_back(*std::move(row));
  }
  if (!problems.empty()) return problems;
  return rows;
}

// Code stays mapped until the process ends, as dlopen's own state does, so this record of it is
// process-wide too. Guarded by its mutex.
struct Loaded {
  std::mutex mutex;
  std::vector<std::unique_ptr<const Plugin>> plugins;
};
Loaded& LoadedPlugins() {
  static Loaded loaded;
  return loaded;
}

// Closes the library unless it is kept.
class Library {
 public:
  explicit Library(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  bool ok() const { return handle_ != nullptr; }
  void* Symbol(const char* name) const { return dlsym(handle_, name); }
  void Keep() { handle_ = nullptr; }

 private:
  void* handle_;
};

std::string LoaderError() {
  const char* text = dlerror();
  return text == nullptr ? "the loader gave no reason" : text;
}

bool LooksLikePlugin(const std::string& file) {
  return file.starts_with("libashlar_") && file.ends_with(".so");
}

}  // namespace

Result<const Plugin*> Plugin::Load(const std::string& path) {
  // An absolute path keeps dlopen from searching for a bare file name.
  const std::string file = fs::absolute(path).lexically_normal().string();
  Loaded& loaded = LoadedPlugins();
  const std::lock_guard lock(loaded.mutex);
  for (const auto& plugin : loaded.plugins) {
    if (plugin->path_ == file) return plugin.get();
  }

  Library library(file);
  if (!library.ok()) {
    return Problem{file, LoaderError(), "a shared object that this machine can load",
                   std::string(kReinstall)};
  }
  void* symbol = library.Symbol(ASHLAR_PLUGIN_SYMBOL);
  if (symbol == nullptr) {
    return Problem{file, fmt::format("no symbol {}", ASHLAR_PLUGIN_SYMBOL), "an ashlar plugin",
                   "remove the file from the plugin directory"};
  }
  const ashlar_plugin* table = reinterpret_cast<ashlar_plugin_table_fn>(symbol)();
  if (Problems problems = CheckTable(table, file); !problems.empty()) return problems;
  auto rows = ReadRows(*table, file);
  if (!rows.ok()) return rows.problems();

  std::unique_ptr<Plugin> plugin(new Plugin);
  plugin->path_ = file;
  plugin->table_ = table;
  plugin->rows_ = *std::move(rows);
  library.Keep();
  loaded.plugins.push_back(std::move(plugin));
  return loaded.plugins.back().get();
}

int Plugin::RowIndex(std::string_view row_name) const {
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].name == row_name) return static_cast<int>(i);
  }
  return -1;
}

ashlar_probe Plugin::Probe() const {
  ashlar_probe probe{};
  if (table_->probe(&probe) == ASHLAR_OK) {
    probe.detail[sizeof probe.detail - 1] = '\0';
    return probe;
  }
  ashlar_probe broken{};
  broken.outcome = 4;
  const char* reason = table_->last_error();
  std::strncpy(broken.detail, reason == nullptr ? "" : reason, sizeof broken.detail - 1);
  return broken;
}

PluginScan LoadPlugins(const std::string& directory) {
  PluginScan scan;
  std::error_code error;
  std::vector<std::string> files;
  fs::directory_iterator it(directory, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (LooksLikePlugin(it->path().filename().string())) files.push_back(it->path().string());
  }
  if (error) {
    scan.refused.push_back({directory, error.message(), "a directory of plugins (libashlar_*.so)",
                            "install ashlar as a whole: bin/ and lib/ashlar/"});
    return scan;
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    auto plugin = Plugin::Load(file);
    if (!plugin.ok()) {
      scan.refused.insert(scan.refused.end(), plugin.problems().begin(), plugin.problems().end());
      continue;
    }
    const auto same = std::find_if(scan.plugins.begin(), scan.plugins.end(),
                                   [&](const Plugin* p) { return p->name() == (*plugin)->name(); });
    if (same != scan.plugins.end()) {
      scan.refused.push_back({file, fmt::format("a second plugin named {}", (*plugin)->name()),
                              fmt::format("already loaded from {}", (*same)->path()),
                              "remove one of the two files"});
      continue;
    }
    scan.plugins.push_back(*plugin);
  }
  std::sort(scan.plugins.begin(), scan.plugins.end(),
            [](const Plugin* a, const Plugin* b) { return a->name() < b->name(); });
  return scan;
}

std::string DefaultPluginDirectory() {
  std::array<char, PATH_MAX> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  Check(size > 0 && size < static_cast<ssize_t>(path.size()), "/proc/self/exe can be read");
  const fs::path executable(std::string(path.data(), static_cast<size_t>(size)));
  return (executable.parent_path() / "../lib/ashlar").lexically_normal().string();
}

}  // namespace ashlar
