#include "listen_address.h"

#include <charconv>

#include "base/mapped_file.h"
#include "spec/yaml_tree.h"

namespace ashlar {
namespace {

constexpr int64_t kMostBytes = 256 << 10;  // as for a spec

const YamlNode* Descend(const YamlNode* node, std::string_view key) {
  return node != nullptr && node->is_map() ? node->Find(key) : nullptr;
}

int PortIn(const YamlNode& node, int fallback) {
  int port = 0;
  const char* end = node.text.data() + node.text.size();
  auto [stop, error] = std::from_chars(node.text.data(), end, port);
  bool right = node.is_scalar() && error == std::errc() && stop == end && port > 0 && port <= 65535;
  return right ? port : fallback;
}

}  // namespace

Spec::Server ReadListenAddress(const std::string& path) {
  Spec::Server server;
  Result<std::string> text = ReadTextFile(path, kMostBytes);
  if (!text) return server;
  YamlTree tree = ParseYaml(*text, path);
  if (!tree.problems.empty()) return server;
  const YamlNode* section = Descend(&tree.root, "server");
  if (section == nullptr) {
    section = Descend(Descend(Descend(&tree.root, "spec"), "model"), "server");
  }
  if (const YamlNode* host = Descend(section, "host"); host != nullptr && host->is_scalar()) {
    server.host = host->text;
  }
  if (const YamlNode* port = Descend(section, "port")) server.port = PortIn(*port, server.port);
  return server;
}

}  // namespace ashlar
