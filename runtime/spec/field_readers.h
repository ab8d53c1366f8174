// Readers of one kind of value each. Every one accepts exactly one spelling and says which it is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/fields.h"

namespace ashlar {

// Adds a key without looking for it among those that are there, which is linear in an ordered
// object. Repeated keys are refused elsewhere.
void Append(Json& object, const std::string& key, Json value);

Reading Refused(const YamlNode& node, std::string found, std::string allowed, std::string next);

// A plain decimal integer in [min, max].
Reading ReadInteger(const YamlNode& node, int64_t min, int64_t max, const std::string& allowed);

// true or false, and no other word.
Reading ReadBoolean(const YamlNode& node);

// Text, quoted where YAML readers would take it for something else.
Reading ReadText(const YamlNode& node, const std::string& allowed);

// One of `words`.
Reading ReadWord(const YamlNode& node, const std::vector<std::string>& words);

// Text that `fits`; `next` says what to write instead.
Reading ReadPattern(const YamlNode& node, bool (*fits)(std::string_view),
                    const std::string& allowed, const std::string& next);

// A list of different texts that fit.
Reading ReadList(const YamlNode& node, bool (*fits)(std::string_view), const std::string& allowed);

// "80%" or "12GiB".
Reading ReadMemory(const YamlNode& node, const std::string& allowed);
std::optional<MemoryAmount> ParseMemory(std::string_view text);

// Any JSON value written as YAML, nulls included; only maps at the top.
Reading ReadFree(const YamlNode& node);

// Patterns.
bool IsModelName(std::string_view text);
bool IsBackendName(std::string_view text);
bool IsPath(std::string_view text);
bool IsBuiltinName(std::string_view text);
bool IsHost(std::string_view text);

}  // namespace ashlar
