// vLLM's command line as data: what each flag takes, and what becomes of it here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "import/import.h"

namespace ashlar {

enum class Takes {
  kNothing,  // a switch; --no-NAME says the opposite
  kValue,
  kValues,  // one or more, up to the next flag
};

// What a flag's value becomes: a value for `field`, nothing (the spec's default already says it),
// or a refusal.
struct Conversion {
  ImportNote::Outcome outcome = ImportNote::Outcome::kMapped;
  Json value;        // null: the field stays out of the spec
  std::string text;  // why, or where meanings differ
};
using Convert = Conversion (*)(const std::string& value);

struct Flag {
  std::string_view name;   // "max-model-len"
  std::string_view alias;  // "tp" of -tp, or ""
  Takes takes;
  ImportNote::Outcome outcome;
  std::string_view field;  // when mapped
  Convert convert;         // null: `outcome` and `text` say all
  std::string_view text;
};

// By name. "tensor_parallel_size" and "tensor-parallel-size" are one name.
std::span<const Flag> Flags();
const Flag* FindFlag(std::string_view name);
const Flag* FindAlias(std::string_view alias);

}  // namespace ashlar
