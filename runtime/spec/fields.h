// The one table of the document's fields. It drives reading, the defaults and words of messages,
// SpecFields() and docs/spec.md.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "spec/spec.h"
#include "spec/yaml_tree.h"

namespace ashlar {

// One wrong value; the reader that calls adds the place.
struct Mistake {
  const YamlNode* at;
  std::string found, allowed, next;
  std::string below;  // from the field to the value: "[1]", ".rope_scaling.factor", or ""
};

// What a field's reader made of a node: the value as the document gives it, or mistakes.
struct Reading {
  Json value;
  std::vector<Mistake> mistakes;
};

struct Field {
  SpecField doc;
  // Reads a leaf into the spec; empty for objects and maps, whose keys are fields of their own.
  // `key` is the map key that stands for "*".
  std::function<Reading(const YamlNode& node, std::string_view key, Spec& spec)> read;
  // For maps: what is wrong with such a key; empty when nothing.
  std::function<std::vector<Mistake>(const YamlNode& key)> check_key;
};

const std::vector<Field>& Fields();
// The field of this path ("backends.*.use"), or null.
const Field* FindField(std::string_view path);
// Keys directly under an object path ("" is the document), in document order.
std::vector<std::string> FieldKeys(std::string_view path);

}  // namespace ashlar
