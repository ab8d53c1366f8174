// Rules for the shape of a YAML tree, whatever its fields: each key once and plain, no YAML
// machinery.
#pragma once

#include <functional>
#include <string>

#include "spec/yaml_tree.h"

namespace ashlar {

// Called for each broken rule with the path ("kv.blockSize", "backends.default.prefer[0]").
using StructureReport =
    std::function<void(const std::string& path, const YamlNode& at, std::string found,
                       std::string allowed, std::string next)>;

// Refuses anchors, aliases, tags, merge keys, duplicate keys and keys that are no text, in the
// whole tree.
void CheckStructure(const YamlNode& root, const StructureReport& report);

// "kv" + "blockSize" -> "kv.blockSize"; unprintable keys are escaped and long ones cut.
std::string ChildPath(const std::string& path, const YamlNode& key);

}  // namespace ashlar
