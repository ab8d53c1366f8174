// The OpenAPI schema of `spec.model`, derived from the field table that reads the document: words
// and bounds are found by asking each field's own reader, so schema and reader cannot differ.
#pragma once

#include <string>

#include "base/json.h"

namespace ashlar::hooks {

// A structural schema without defaults: what is stored is what was given, so its digest stays the
// file's. Rules that a schema cannot state are left to the runtime's words.
Json ModelSchema();

// The same as block YAML, each line indented by `spaces`.
std::string ModelSchemaYaml(int spaces);

}  // namespace ashlar::hooks
