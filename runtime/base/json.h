// JSON from outside is read under limits and keeps its key order; JSON of ours is written the same
// way each time.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ashlar {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  int depth = 64;
  int64_t values =
      100'000;  // scalars, arrays and objects together; integers inside an array count a sixteenth
};

// Refuses invalid UTF-8, duplicate names, over-deep and over-large documents, numbers that no
// double holds, and anything after the first value. `place` opens the message, followed by the byte
// where reading stopped.
Result<Json> ParseJson(std::string_view text, std::string_view place,
                       const JsonLimits& limits = {});

// One byte sequence for one value: keys sorted, shortest numbers, nulls in objects left out, no
// spaces.
std::string CanonicalJson(const Json& value);

// Compact text for the wire; invalid UTF-8 is replaced, never thrown on.
std::string DumpJson(const Json& value);

}  // namespace ashlar
